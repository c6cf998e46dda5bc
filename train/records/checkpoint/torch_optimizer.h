// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {

/// What torch.optim.Optimizer.state_dict() returns: {"state": {0: {"exp_avg": ...}, ...}, "param_groups": [{"lr": ...,
/// "params": [0, 1, ...]}, ...]}. Parameters have numbers instead of names: they count through the groups in the order
/// in which the optimizer got them.
struct TorchOptimizer {
  /// An option of a group: None, True, 0, 0.001 or (0.9, 0.999).
  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::vector<double>>;

  struct Group {
    std::vector<std::pair<std::string, Value>> options;
    std::vector<std::int64_t> parameters;  ///< their numbers
    std::vector<std::string> names = {};   ///< of the parameters; empty: unknown
  };
  std::vector<Group> groups;
  /// The tensors of each parameter: exp_avg, step, ...; numbers become f64 scalars, what is None is left out.
  std::map<std::int64_t, std::vector<TensorRecord>> state;
};

/// "None", "True", "0.001", "(0.9, 0.999)"
std::string to_string(const TorchOptimizer::Value& value);

/// Writes and syncs a file for optimizer.load_state_dict(torch.load(path, weights_only=True)). `about` as for write_pt.
///
/// Errors    as write_pt.
void write_torch_optimizer(FileSystem& files, const std::filesystem::path& path, const TorchOptimizer& optimizer,
                           std::string_view about = {});

/// Reads torch.save(optimizer.state_dict(), path), also where a dictionary holds it as "optimizer_state_dict",
/// "optimizer", "optim" or "optimizer_states". Parameters may be named: by "param_names" (Adam(model.named_parameters())),
/// or in place of numbers (torch.distributed.checkpoint). A tensor of one element counts as a number, as the lr of
/// capturable optimizers. Options of other kinds, which scripts add to groups, are skipped. Nothing in the file is
/// executed.
///
/// Errors    CheckpointError as read_pt; a state or group of another form; more than 1,000,000 parameters.
/// Source    torch/optim/optimizer.py.
/// Example   tests/train/records/checkpoint/torch_optimizer_test.cpp
TorchOptimizer read_torch_optimizer(FileSystem& files, const std::filesystem::path& path);

}  // namespace gradring::train
