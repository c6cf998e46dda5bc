// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "comm/process_group.h"
#include "kernels/runtime/error.h"
#include "nn/parameter/arena.h"
#include "train/report/sha256.h"

namespace gradring::train {

/// Replicas that should be equal are not. Exit code 163.
class ReplicaError : public Error {
 public:
  using Error::Error;
};

/// SHA-256 of all weights: f32 little-endian, in state_dict order and PyTorch's layout. The weights must be in host memory.
Sha256 hash_weights(std::span<const nn::Parameter> parameters, const nn::Arena& weights);

/// Compares what must be the same on all ranks. `what` names it for the message.
///
/// Errors    ReplicaError that names the ranks which differ from the majority; comm::CommError.
void check_replicas(comm::ProcessGroup& group, const Sha256& mine, const std::string& what);

}  // namespace gradring::train
