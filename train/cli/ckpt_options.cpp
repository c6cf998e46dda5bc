// SPDX-License-Identifier: Apache-2.0
#include "train/cli/ckpt_options.h"

#include <fmt/format.h>

#include "train/checkpoint/error.h"
#include "train/config/usage_error.h"
#include "train/report/run_lock.h"
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

std::string state_text(FolderState state, bool run_goes_on) {
  switch (state) {
    case FolderState::in_place: return "in place";
    case FolderState::partial: return run_goes_on ? "being saved" : "never finished";
    case FolderState::removing: return run_goes_on ? "being removed" : "half removed";
    case FolderState::replaced: return run_goes_on ? "being replaced" : "replaced";
    case FolderState::abandoned: return "abandoned";
  }
  return {};
}

bool run_goes_on(const std::filesystem::path& root) {
  const std::filesystem::path folder = (std::filesystem::absolute(root) / "").lexically_normal();  // with a slash behind
  return is_locked(folder.parent_path().parent_path());
}

}  // namespace gradring::train
