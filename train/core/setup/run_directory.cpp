// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/run_directory.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "train/options/file_advice.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/checkpoint.h"
#include "train/records/checkpoint/checkpoint_directory.h"
#include "train/records/checkpoint/error.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/line_file.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStem = "config.resolved";
constexpr std::string_view kEnding = ".toml";

fs::path numbered(const fs::path& run_dir, int number) {
  return run_dir / (number == 1 ? fmt::format("{}{}", kStem, kEnding) : fmt::format("{}-{}{}", kStem, number, kEnding));
}

/// 3 for config.resolved-3.toml; 0 for any other name.
int number_of(const std::string& name) {
  const std::string head = fmt::format("{}-", kStem);
  if (!name.starts_with(head) || !name.ends_with(kEnding)) return 0;
  int number = 0;
  const char* const end = name.data() + name.size() - kEnding.size();
  const auto [stop, error] = std::from_chars(name.data() + head.size(), end, number);
  return error == std::errc() && stop == end && number > 1 ? number : 0;
}

/// 0 if there is no file.
int newest_number(FileSystem& files, const fs::path& run_dir) {
  int newest = files.exists(first_config(run_dir)) ? 1 : 0;
  for (const std::string& name : files.list(run_dir)) newest = std::max(newest, number_of(name));
  return newest;
}

constexpr const char* kLogs = "logs";

void check_created(const fs::path& path, const std::error_code& error) {
  if (error)
    throw EnvironmentError("cannot create the run directory " + path.string() + ": " + error.message() + "; " +
                           advice_on(error.value(), "--run-dir"));
}

/// Whether a killed make_run_dir may leave this entry.
bool is_leftover(const fs::path& entry, const fs::path& run_dir) {
  if (entry.filename() == kLogs) return fs::is_empty(entry);
  if (entry.filename() == kRunLockFile) return is_run_lock(entry);
  return entry == temporary_of(first_config(run_dir));
}

bool holds_checkpoint(const fs::path& run_dir) {
  const fs::path checkpoints = checkpoints_of(run_dir);
  if (!fs::is_directory(checkpoints)) return false;
  PosixFileSystem files;
  return std::ranges::any_of(list_step_folders(files, checkpoints), [&files](const StepFolder& folder) {
    return folder.state == FolderState::in_place && files.exists(folder.path / kMetaFile);
  });
}

void remove_leftovers(const Directory& run_dir) {
  const FileAt logs = run_dir.at(run_dir.path() / kLogs);
  const FileAt draft = run_dir.at(temporary_of(first_config(run_dir.path())));
  ::unlinkat(logs.directory(), logs.name(), AT_REMOVEDIR);
  ::unlinkat(draft.directory(), draft.name(), 0);
}

/// The nearest existing directory above `path`; empty for the working directory.
fs::path existing_parent(const fs::path& path) {
  fs::path parent = path.parent_path();
  std::error_code ignored;
  while (!parent.empty() && !fs::exists(parent, ignored)) parent = parent.parent_path();
  return parent;
}

/// Syncs the entries of `path` and of the directories between it and `top`.
void sync_names(fs::path path, const fs::path& top) try {
  PosixFileSystem files;
  for (; path != top; path = path.parent_path()) files.sync_folder(path.has_parent_path() ? path.parent_path() : ".");
} catch (const FileError& error) {
  if (error.code() == EACCES) return;  // a directory with write but no read permission cannot be opened for fsync
  check_created(path, std::error_code(error.code(), std::generic_category()));
}

/// Returns whether it created the directory.
bool created(const fs::path& path) {
  std::error_code error;
  const bool was_made = fs::create_directory(path, error);
  if (error != std::errc::file_exists) check_created(path, error);
  return was_made;
}

void fill(const Directory& run_dir, const std::string& config) try {
  const int error = make_folder(run_dir.at(run_dir.path() / kLogs));
  if (error != EEXIST) check_created(run_dir.path(), std::error_code(error, std::generic_category()));
  write_file_whole(run_dir.at(first_config(run_dir.path())), config);
} catch (...) {
  remove_leftovers(run_dir);
  throw;
}

/// After its state was read by its path.
void check_not_moved(const Directory& run_dir) {
  if (run_dir.current_path() != run_dir.path())
    throw EnvironmentError("the run directory " + run_dir.path().string() +
                           " was moved or removed while the run started; start it again");
}

/// An entry of a directory that a new run may not find there; empty if it has no such entry.
fs::path foreign_entry(const fs::path& path) {
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (!is_leftover(entry.path(), path)) return entry.path();
  return {};
}

/// What keeps a directory from being a new run's: "holds lost+found".
std::string found_in(const fs::path& path) try {
  if (!fs::exists(path)) return "is a link to " + fs::read_symlink(path).string() + ", which does not exist";
  if (!fs::is_directory(path)) return "is not a directory";
  const fs::path entry = foreign_entry(path);
  return entry.empty() ? "is empty" : "holds " + entry.filename().string();
} catch (const fs::filesystem_error& error) {
  return "cannot be read: " + error.code().message();
}

std::string choose_another(const fs::path& path) {
  std::error_code error;
  return "choose another" + (fs::is_directory(path, error) ? ", such as " + (path / "run").string() : "");
}

}  // namespace

std::optional<fs::path> named_run_dir(const std::string& option) {
  if (option.empty()) return std::nullopt;
  const fs::path given = option;
  return given.has_filename() ? given : given.parent_path();  // without a trailing slash
}

fs::path generated_run_dir(std::string_view name, std::time_t now) {
  return fmt::format("{}/{}-{:%Y%m%d-%H%M%S}", kRunsFolder, name, fmt::localtime(now));
}

RunDirState state_of(const fs::path& path) try {
  if (fs::symlink_status(path).type() == fs::file_type::not_found) return RunDirState::absent;
  if (fs::exists(first_config(path)) || holds_checkpoint(path)) return RunDirState::run;
  if (!fs::is_directory(path)) return RunDirState::other;
  return foreign_entry(path).empty() ? RunDirState::vacant : RunDirState::other;
} catch (const fs::filesystem_error& error) {
  throw EnvironmentError("cannot read " + path.string() + ": " + error.code().message() + "; " +
                         advice_on(error.code().value(), "directory, or look at its permissions"));
}

std::string did_you_mean_run(const fs::path& path) try {
  fs::path newest;
  fs::file_time_type written_at{};
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    const fs::path in_runs = kRunsFolder / path;
    if (path.is_relative() && state_of(in_runs) == RunDirState::run) newest = in_runs;
  } else {
    for (const auto& entry : fs::directory_iterator(path, ignored)) {
      if (!entry.is_directory(ignored) || state_of(entry.path()) != RunDirState::run) continue;
      const fs::file_time_type time = fs::last_write_time(entry.path(), ignored);
      if (newest.empty() || time > written_at) newest = entry.path(), written_at = time;
    }
  }
  return newest.empty() ? "" : fmt::format(". Did you mean {}?", newest.string());
} catch (const Error&) {  // a suggestion is not worth another error
  return "";
} catch (const fs::filesystem_error&) {
  return "";
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
  throw UsageError("--run-dir " + path.string() + " " + found_in(path) +
                   ", expected an empty directory: " + choose_another(path));
}

void check_is_run_dir(const fs::path& path) {
  if (state_of(path) != RunDirState::run)
    throw UsageError("--run-dir " + path.string() + " is not a run directory: it " + found_in(path) +
                     ", and has neither " + first_config(path).filename().string() + " nor a checkpoint; " +
                     choose_another(path));
}

namespace {

/// Another run may have created it just now: then the lock's error names that run. The lock is asked after the directory
/// was found to be a run's, not before, when it may not have been one yet.
void check_new_or_locked(const NewRunDir& spec) try { check_new_run_dir(spec.path); } catch (const UsageError&) {
  if (state_of(spec.path) == RunDirState::run) RunLock(spec.path, spec.launch_folder).release();
  throw;
}

}  // namespace

LockedRunDir make_run_dir(const NewRunDir& spec) {
  std::error_code error;
  if (!spec.generated) check_new_or_locked(spec);
  const fs::path top = existing_parent(spec.path);
  if (spec.path.has_parent_path()) fs::create_directories(spec.path.parent_path(), error);
  check_created(spec.path, error);
  LockedRunDir run{.path = spec.path, .lock = {}};
  bool made = created(run.path);
  for (int number = 2; !made && spec.generated; ++number) {
    run.path = fmt::format("{}-{}", spec.path.string(), number);
    made = created(run.path);
  }
  try {
    run.lock = RunLock(run.path, spec.launch_folder);
    check_new_run_dir(run.path);  // another run may have started and ended since
    check_not_moved(run.lock.directory());
    sync_names(run.path, top);
    fill(run.lock.directory(), spec.config);
  } catch (...) {
    const Directory& locked = run.lock.directory();
    const bool is_ours = made && (!locked || locked.current_path() == run.path);
    run.lock.release();
    if (is_ours) fs::remove(run.path, error);  // fails if another run has written there
    throw;
  }
  return run;
}

fs::path checkpoints_of(const fs::path& run_dir) { return run_dir / "checkpoints"; }
fs::path metrics_of(const fs::path& run_dir) { return run_dir / "metrics.jsonl"; }
fs::path tensorboard_of(const fs::path& run_dir) { return run_dir / "tensorboard"; }
fs::path summary_of(const fs::path& run_dir) { return run_dir / "summary.json"; }
fs::path log_file(const fs::path& run_dir, int rank) { return run_dir / kLogs / fmt::format("rank_{}.log", rank); }

bool is_config_name(const std::string& name) { return name == numbered("", 1) || number_of(name) > 0; }
fs::path first_config(const fs::path& run_dir) { return numbered(run_dir, 1); }
fs::path newest_config(FileSystem& files, const fs::path& run_dir) try {
  return numbered(run_dir, std::max(1, newest_number(files, run_dir)));
} catch (const FileError&) {
  return first_config(run_dir);
}

fs::path newest_config(const fs::path& run_dir) {
  PosixFileSystem files;
  return newest_config(files, run_dir);
}

fs::path write_next_config(const Directory& run_dir, std::string_view text) try {
  PosixFileSystem files(run_dir);
  const fs::path path = numbered(run_dir.path(), newest_number(files, run_dir.path()) + 1);
  write_file_whole(run_dir.at(path), text);
  return path;
} catch (const FileError& error) {
  throw EnvironmentError(std::string(error.what()) + "; choose another --run-dir");
}

}  // namespace gradring::train
