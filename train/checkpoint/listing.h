// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "train/checkpoint/file_system.h"
#include "train/checkpoint/step_folder.h"

namespace gradring::train {

/// A checkpoint's folder as it lies there, whole or not; only its meta.json was looked at.
struct ListedCheckpoint {
  StepFolder folder;
  std::optional<double> score;
  std::uint64_t bytes = 0;
  bool readable = false;  ///< whether its meta.json is sound
  bool is_latest = false, is_best = false;
};

/// All in `root`, the highest step first.
///
/// Errors    FileError.
std::vector<ListedCheckpoint> list_checkpoints(FileSystem& files, const std::filesystem::path& root);

}  // namespace gradring::train
