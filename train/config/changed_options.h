// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/train_config.h"

namespace gradring::train {

/// An option whose value differs from that of an earlier start of the same run.
struct ChangedOption {
  std::string name;
  std::string before;
  std::string now;
};

/// The options that differ between `before`, the settings of an earlier start as TOML (to_toml or to_resolved_toml), and a
/// config, given as the user wrote it and as it was resolved: a value that equals either is not a change. Leaves out options
/// that say where a run starts and how it is shown (resume, weights, run-dir, nprocs, progress). An option that `before` does
/// not set has its default there; keys and values that this version does not know are passed over. Nothing if `before` is not
/// TOML or sets no option: what changed is not known then.
std::optional<std::vector<ChangedOption>> changed_options(std::string_view before, const TrainConfig& given,
                                                          const TrainConfig& resolved);

/// "epochs 2 -> 3, lr 0.001 -> 0.002"
std::string to_string(std::span<const ChangedOption> changes);

}  // namespace gradring::train
