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
  bool in_place = false;             ///< the run goes on in a run directory that exists
  std::vector<std::string> remarks;  ///< what was passed over, and why
};

/// What --resume and --weights mean for a run in `run_dir` (nothing where its name is generated, so that it is new); reads
/// what they name, and changes nothing.
///
/// Errors    UsageError if the run directory is there and must not be, or is not a run directory; CheckpointError if what was
///           named is damaged, or, with auto, every checkpoint is; EnvironmentError if something could not be read.
Start find_start(const TrainConfig& config, const std::optional<std::filesystem::path>& run_dir, FileSystem& files);

}  // namespace gradring::train
