// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "kernels/base/deadline.h"
#include "train/core/optim/optimizer.h"
#include "train/core/trainer/replica.h"
#include "train/records/checkpoint/tensor_file.h"
#include "train/records/checkpoint/torch_optimizer.h"

namespace gradring::train {

/// Weights from elsewhere, with any spelling of their names (ParameterNames).
struct FirstWeights {
  std::vector<TensorRecord> tensors;  ///< empty on ranks other than 0
  std::filesystem::path from;
  std::optional<TorchOptimizer> optimizer = {};  ///< goes on with them; empty on ranks other than 0
  std::filesystem::path optimizer_from = {};
};

struct LoadedWeights {
  std::vector<std::string> remarks{};  ///< what was stripped from the names of the weights
  std::int64_t steps = 0;              ///< that the optimizer has taken before; 0 for a new one
};

/// Begins the training of a replica with these weights, and with the state of their optimizer if rank 0 has it.
/// Collective.
///
/// Errors    CheckpointError, on rank 0, if they belong to another model or optimizer.
LoadedWeights load_first_weights(Replica& replica, FirstWeights weights, const OptimizerSpec& optimizer,
                                 comm::ProcessGroup& group, Deadline deadline);

}  // namespace gradring::train
