// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/file_system.h"
#include "train/config/train_config.h"
#include "train/trainer/trainer.h"

namespace gradring::train {

/// Where a run begins. With neither, weights are drawn.
struct Start {
  std::optional<ResumePoint> resume;
  std::optional<FirstWeights> weights;
  bool in_place = false;             ///< the run directory is there already, and its files are continued
  std::vector<std::string> remarks;  ///< what was passed over, and why
};

/// What --resume and --weights mean for a run in `run_dir`; reads what they name.
///
/// Errors    UsageError if the run directory is there and must not be, or is no run directory; CheckpointError if what was
///           named cannot be read; EnvironmentError if the disk does not let itself be read.
Start find_start(const TrainConfig& config, const std::filesystem::path& run_dir, FileSystem& files);

}  // namespace gradring::train
