// SPDX-License-Identifier: Apache-2.0
#include "train/setup/start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "train/checkpoint/error.h"
#include "train/checkpoint/step_folder.h"
#include "train/config/usage_error.h"
#include "train/report/environment_error.h"
#include "train/report/run_directory.h"
#include "train/setup/named_checkpoint.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// Whether a checkpoint is one of the run in `run_dir`.
bool is_of(const fs::path& run_dir, const fs::path& checkpoint) {
  return fs::weakly_canonical(checkpoint).parent_path() == fs::weakly_canonical(checkpoints_of(run_dir));
}

bool was_finished(const StepFolder& folder) {
  return folder.state == FolderState::in_place || folder.state == FolderState::replaced;
}

/// Begins a run at step 0 only where it has saved nothing: a training that is lost is the user's to give up.
void check_nothing_is_lost(const Start& start, const fs::path& checkpoints, FileSystem& files) {
  if (std::ranges::none_of(list_step_folders(files, checkpoints), was_finished)) return;
  throw CheckpointError(checkpoints, fmt::format("holds no valid checkpoint ({})", fmt::join(start.remarks, "; ")),
                        "nothing was changed: restore a checkpoint, or start again at step 0 with --resume "
                        "auto-or-restart, which keeps the damaged ones as abandoned-step-N");
}

Start find(const TrainConfig& config, const std::optional<fs::path>& run_dir, FileSystem& files) {
  Start start;
  if (resumes_automatically(config)) {
    const RunDirState state = state_of(*run_dir);
    start.in_place = state == RunDirState::run || state == RunDirState::other;
    if (start.in_place) {
      check_is_run_dir(*run_dir);
      const fs::path checkpoints = checkpoints_of(*run_dir);
      start.resume = newest_checkpoint(files, checkpoints, start.remarks);
      if (!start.resume && config.resume == "auto") check_nothing_is_lost(start, checkpoints, files);
    }
  } else if (config.resume != "none") {
    start.resume = named_checkpoint(files, config.resume, "--resume", start.remarks);
    start.in_place = run_dir && is_of(*run_dir, start.resume->from);
    if (start.in_place) check_is_run_dir(*run_dir);
  }
  if (run_dir && !start.in_place) check_new_run_dir(*run_dir);
  if (!start.resume && !config.weights.empty()) {
    NamedTensors named = named_tensors(files, config.weights, "--weights");
    start.weights = FirstWeights{.tensors = std::move(named.contents.model), .from = std::move(named.from)};
    start.remarks = std::move(named.remarks);
  }
  return start;
}

}  // namespace

Start find_start(const TrainConfig& config, const std::optional<fs::path>& run_dir, FileSystem& files) {
  try {
    return find(config, run_dir, files);
  } catch (const FileError& error) {
    throw EnvironmentError(std::string(error.what()) +
                           "; nothing was changed: look at the disk and at the permissions, and resume again");
  }
}

}  // namespace gradring::train
