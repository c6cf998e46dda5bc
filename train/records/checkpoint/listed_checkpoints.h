// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/step_folders.h"

namespace gradring::train {

enum class MetaState {
  valid,
  damaged,
  newer_format,  ///< a newer version of gradring wrote it
  unreadable,    ///< a system error: it may be valid
};

/// Reads the score in the meta.json of a checkpoint. verify_checkpoint tells why one is damaged.
MetaState read_score(FileSystem& files, const std::filesystem::path& folder, std::optional<double>& score);

/// What `gradring ckpt ls` shows of a checkpoint: the folder and its meta.json, which alone is verified.
struct ListedCheckpoint {
  StepFolder folder;
  std::optional<double> score;
  std::uint64_t bytes = 0;  ///< of the files that can be opened
  MetaState meta = MetaState::damaged;
  bool is_latest = false, is_best = false;  ///< by the steps and scores in meta.json
};

/// As list_step_folders. A run may save and remove checkpoints at the same time.
std::vector<ListedCheckpoint> list_checkpoints(FileSystem& files, const std::filesystem::path& root);

}  // namespace gradring::train
