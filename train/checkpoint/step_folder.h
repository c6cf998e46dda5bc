// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/file_system.h"

namespace gradring::train {

/// What a folder of a checkpoint is, by what stands around its step.
enum class FolderState {
  in_place,   ///< step-<N>
  partial,    ///< step-<N>.partial: being written, or was when the power went
  removing,   ///< step-<N>.removing
  replaced,   ///< step-<N>.replaced: the old one while a new step-<N> takes its place
  abandoned,  ///< abandoned-step-<N>: of a training that was left behind for an earlier step
};

/// A folder whose name says that it is a checkpoint's.
struct StepFolder {
  std::int64_t step = 0;
  FolderState state = FolderState::in_place;
  std::filesystem::path path;
};

/// "step-120", "step-120.partial", ...
std::string step_folder_name(std::int64_t step, FolderState state = FolderState::in_place);

/// What a path's last name says; nothing if it is not the name of a checkpoint's folder.
std::optional<StepFolder> step_folder_at(const std::filesystem::path& path);

/// Those in `root`, the highest step first, and of one step in the order of FolderState. Other names are left out.
///
/// Errors    FileError if `root` cannot be listed; a root that is not there holds none.
std::vector<StepFolder> list_step_folders(FileSystem& files, const std::filesystem::path& root);

}  // namespace gradring::train
