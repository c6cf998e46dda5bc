// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "train/checkpoint/file_system.h"
#include "train/checkpoint/step_folder.h"
#include "train/cli/command_line.h"

namespace gradring::train {

/// The one path that an action of `gradring ckpt` is about; `what` is what --help calls it.
///
/// Errors    UsageError if there is none, or more than one.
std::filesystem::path only_path(const CommandWords& words, const CommandLine& line, const std::string& what);

/// The folder of checkpoints of a run directory, or the folder itself.
///
/// Errors    CheckpointError if it holds none.
std::filesystem::path checkpoints_of_run(FileSystem& files, const std::filesystem::path& run);

/// What happens to a checkpoint's folder that is not in place; `run_goes_on`: whether the run that made it does.
std::string state_text(FolderState state, bool run_goes_on);

/// Whether the run whose checkpoints lie in `root` goes on.
bool run_goes_on(const std::filesystem::path& root);

}  // namespace gradring::train
