// SPDX-License-Identifier: Apache-2.0
#include "train/cli/ckpt_options.h"

#include <fmt/format.h>

#include "train/checkpoint/error.h"
#include "train/checkpoint/step_folder.h"
#include "train/config/usage_error.h"
#include "train/setup/named_checkpoint.h"

namespace gradring::train {

std::filesystem::path only_path(const CommandWords& words, const CommandLine& line, const std::string& what) {
  if (words.words.size() == 1) return words.words.front();
  throw UsageError(fmt::format("name one {}, not {}: {} {}", what,
                               words.words.empty() ? "none" : std::to_string(words.words.size()), line.command, what));
}

std::filesystem::path checkpoints_of_run(FileSystem& files, const std::filesystem::path& run) {
  constexpr const char* kAdvice = "name a run directory, or the folder of its checkpoints";
  std::error_code ignored;
  if (!std::filesystem::is_directory(run, ignored))
    throw CheckpointError(run, files.exists(run) ? "is no folder" : "is not there", kAdvice);
  std::filesystem::path root = checkpoints_in(files, run);
  if (list_step_folders(files, root).empty()) throw CheckpointError(run, "holds no checkpoints", kAdvice);
  return root;
}

}  // namespace gradring::train
