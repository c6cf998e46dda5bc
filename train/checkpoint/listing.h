// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "train/checkpoint/file_system.h"
#include "train/checkpoint/step_folder.h"

namespace gradring::train {

/// What is known of a checkpoint by its meta.json.
enum class MetaState {
  valid,
  damaged,
  unreadable,  ///< the system could not read it: it may be valid
};

/// A checkpoint's folder as it lies there, whole or not; only its meta.json was looked at.
struct ListedCheckpoint {
  StepFolder folder;
  std::optional<double> score;
  std::uint64_t bytes = 0;  ///< of the files that can be opened
  MetaState meta = MetaState::damaged;
  bool is_latest = false, is_best = false;
};

/// All in `root`, the highest step first. A run may save and remove others at the same time.
///
/// Errors    FileError if `root` cannot be listed.
std::vector<ListedCheckpoint> list_checkpoints(FileSystem& files, const std::filesystem::path& root);

}  // namespace gradring::train
