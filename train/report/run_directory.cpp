// SPDX-License-Identifier: Apache-2.0
#include "train/report/run_directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/step_folder.h"
#include "train/config/usage_error.h"
#include "train/report/environment_error.h"
#include "train/report/json_lines.h"
#include "train/report/line_file.h"
#include "train/report/run_configs.h"

namespace gradring::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLogs = "logs";

void check_made(const fs::path& path, const std::error_code& error) {
  if (error)
    throw EnvironmentError("cannot make the run directory " + path.string() + ": " + error.message() +
                           "; choose another --run-dir");
}

/// Whether make_run_dir leaves such an entry where its process is killed.
bool is_leftover(const fs::directory_entry& entry, const fs::path& run_dir) {
  std::error_code error;
  if (entry.path().filename() == kLogs) return fs::is_empty(entry.path(), error);
  if (entry.path().filename() == kRunLockFile) return is_run_lock(entry.path());
  return entry.path() == draft_of(first_config(run_dir));
}

bool holds_checkpoint(const fs::path& run_dir) {
  std::error_code ignored;
  const fs::path checkpoints = checkpoints_of(run_dir);
  if (!fs::is_directory(checkpoints, ignored)) return false;
  PosixFileSystem files;
  return std::ranges::any_of(list_step_folders(files, checkpoints), [&files](const StepFolder& folder) {
    return folder.state == FolderState::in_place && files.exists(folder.path / kMetaFile);
  });
}

void remove_leftovers(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path / kLogs, ignored);
  fs::remove(draft_of(first_config(path)), ignored);
}

/// Returns   whether it was not there before.
bool created(const fs::path& path) {
  std::error_code error;
  const bool was_made = fs::create_directory(path, error);
  if (error != std::errc::file_exists) check_made(path, error);
  return was_made;
}

void fill(const fs::path& path, const std::string& config) try {
  std::error_code error;
  fs::create_directory(path / kLogs, error);
  check_made(path, error);
  write_file_whole(first_config(path), config);
} catch (...) {
  remove_leftovers(path);
  throw;
}

}  // namespace

std::optional<fs::path> named_run_dir(const TrainConfig& config) {
  if (config.run_dir.empty()) return std::nullopt;
  const fs::path given = config.run_dir;
  return given.has_filename() ? given : given.parent_path();  // without a slash behind it
}

fs::path generated_run_dir(const TrainConfig& config, std::time_t now) {
  return fmt::format("runs/{}-{}-{:%Y%m%d-%H%M%S}", config.dataset, config.model, fmt::localtime(now));
}

RunDirState state_of(const fs::path& path) {
  std::error_code error;
  if (fs::symlink_status(path, error).type() == fs::file_type::not_found) return RunDirState::absent;
  if (fs::exists(first_config(path), error) || (!error && holds_checkpoint(path))) return RunDirState::run;
  if (!error && fs::exists(path, error) && fs::is_directory(path, error)) {  // and no link to nothing, which is no error
    fs::directory_iterator entries(path, error);
    if (!error) {
      for (const fs::directory_entry& entry : entries)
        if (!is_leftover(entry, path)) return RunDirState::other;
      return RunDirState::vacant;
    }
  }
  if (error)
    throw EnvironmentError("cannot read " + path.string() + ": " + error.message() + "; choose another --run-dir");
  return RunDirState::other;
}

void check_new_run_dir(const fs::path& path) {
  switch (state_of(path)) {
    case RunDirState::absent:
    case RunDirState::vacant: return;
    case RunDirState::run:
      throw UsageError("--run-dir " + path.string() +
                       " holds a run: resume it with --resume auto, or choose another directory");
    case RunDirState::other: break;
  }
  throw UsageError("--run-dir " + path.string() + " exists and is not an empty directory: choose another");
}

void check_is_run_dir(const fs::path& path) {
  if (state_of(path) != RunDirState::run)
    throw UsageError("--run-dir " + path.string() + " is not a run directory: it holds neither " +
                     first_config(path).filename().string() + " nor a checkpoint; choose another");
}

LockedRunDir make_run_dir(const NewRunDir& spec) {
  std::error_code error;
  if (!spec.generated) {
    // Another run may have made it since it was looked for: names that run while it lasts.
    if (state_of(spec.path) == RunDirState::run) RunLock(spec.path, spec.launch_folder).release();
    check_new_run_dir(spec.path);
  }
  if (spec.path.has_parent_path()) fs::create_directories(spec.path.parent_path(), error);
  check_made(spec.path, error);
  LockedRunDir run{.path = spec.path, .lock = {}};
  bool made = created(run.path);
  for (int number = 2; !made && spec.generated; ++number) {
    run.path = fmt::format("{}-{}", spec.path.string(), number);
    made = created(run.path);
  }
  try {
    run.lock = RunLock(run.path, spec.launch_folder);
    check_new_run_dir(run.path);  // another run may have come and gone since
    fill(run.path, spec.config);
  } catch (...) {
    run.lock.release();
    if (made) fs::remove(run.path, error);  // which it does not if another run has put something there
    throw;
  }
  return run;
}

void continue_run_dir(const fs::path& path, std::int64_t steps, std::int64_t epoch) {
  keep_metrics_until(metrics_of(path), steps, epoch);
}

fs::path checkpoints_of(const fs::path& run_dir) { return run_dir / "checkpoints"; }
fs::path metrics_of(const fs::path& run_dir) { return run_dir / "metrics.jsonl"; }
fs::path summary_of(const fs::path& run_dir) { return run_dir / "summary.json"; }
fs::path log_file(const fs::path& run_dir, int rank) { return run_dir / kLogs / fmt::format("rank_{}.log", rank); }

}  // namespace gradring::train
