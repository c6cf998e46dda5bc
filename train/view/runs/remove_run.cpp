// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/run_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <regex>
#include <system_error>

#include "train/core/setup/run_directory.h"
#include "train/core/setup/run_lock.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/checkpoint.h"
#include "train/records/checkpoint/checkpoint_directory.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/line_file.h"
#include "train/view/runs/run.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) { return fs::symlink_status(path).type() == fs::file_type::directory; }
bool is_file(const fs::path& path) { return fs::symlink_status(path).type() == fs::file_type::regular; }
bool is_link(const fs::path& path) { return fs::symlink_status(path).type() == fs::file_type::symlink; }

/// logs/rank_3.log
bool is_rank_log(const fs::path& path) {
  static const std::regex kName("rank_(0|[1-9][0-9]*)\\.log");
  return is_file(path) && std::regex_match(path.filename().string(), kName);
}

/// tensorboard/events.out.tfevents.<...>
bool is_event_file(const fs::path& path) {
  static const std::regex kName("events\\.out\\.tfevents\\..*");
  return is_file(path) && std::regex_match(path.filename().string(), kName);
}

/// A file of a checkpoint.
bool is_checkpoint_file(const fs::path& path) {
  const std::string name = path.filename();
  return is_file(path) && (name == kModelFile || name == kStateFile || name == kMetaFile);
}

/// checkpoints/latest and best, and what a killed process leaves of them; not where they lead.
bool is_checkpoint_link(const fs::path& path) {
  const std::string name = path.filename();
  const auto is_named = [&name](const std::string& link) { return name == link || name == link + ".partial"; };
  return is_link(path) && (is_named(kLatestLink) || is_named(kBestLink));
}

/// In a copy of a run they may be folders.
bool has_name_of_link(const fs::path& path) { return path.filename() == kLatestLink || path.filename() == kBestLink; }

/// By such a file a directory is recognized as a run's.
bool identifies_run(const fs::path& path, const fs::path& run) {
  return path == metrics_of(run) || (path.parent_path() == run && is_config_name(path.filename()));
}

/// A file directly in a run directory that does not identify it as one.
bool is_result(const fs::path& path, const fs::path& run) {
  if (!is_file(path)) return false;
  return path == summary_of(run) || path == temporary_of(summary_of(run)) || path == temporary_of(first_config(run));
}

/// Sorts what a run directory holds into what gradring wrote and what it did not.
class Planner {
 public:
  explicit Planner(const fs::path& run) {
    removal_.run = run;
    removal_.directory = Directory(run);
    if (!removal_.directory) throw EnvironmentError(fmt::format("cannot open {}: {}", run.string(), last_error()));
  }

  RunRemoval plan() {
    for (const fs::path& path : sorted(removal_.run)) {
      const std::string name = path.filename();
      if (path == checkpoints_of(removal_.run) && is_folder(path))
        add_checkpoints(path);
      else if (path == log_file(removal_.run, 0).parent_path() && is_folder(path))
        add_folder(path, is_rank_log);
      else if (path == tensorboard_of(removal_.run) && is_folder(path))
        add_folder(path, is_event_file);
      else if (is_result(path, removal_.run) || (is_file(path) && identifies_run(path, removal_.run)))
        add_file(path);
      else if (name != kRunLockFile || !is_file(path) || !is_run_lock(path))
        removal_.kept.push_back(path);
    }
    removal_.folders.push_back(removal_.run);
    return std::move(removal_);
  }

 private:
  static std::string last_error() { return std::generic_category().message(errno); }

  static std::vector<fs::path> sorted(const fs::path& folder) {
    std::vector<fs::path> paths;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
    std::ranges::sort(paths);
    return paths;
  }

  void add_file(const fs::path& path) {
    removal_.files.push_back(path);
    std::error_code ignored;
    if (is_file(path)) removal_.bytes += fs::file_size(path, ignored);
  }

  template <class Known>
  void add_folder(const fs::path& folder, Known is_known) {
    for (const fs::path& path : sorted(folder))
      if (is_known(path))
        add_file(path);
      else
        removal_.kept.push_back(path);
    removal_.folders.push_back(folder);
  }

  void add_checkpoints(const fs::path& root) {
    for (const fs::path& path : sorted(root))
      if (is_folder(path) && (step_folder_at(path) || has_name_of_link(path)))
        add_folder(path, is_checkpoint_file);
      else if (is_checkpoint_link(path))
        add_file(path);
      else
        removal_.kept.push_back(path);
    removal_.folders.push_back(root);
  }

  RunRemoval removal_;
};

/// A file, or with AT_REMOVEDIR a folder, unless it is not empty.
void remove_entry(const FileAt& entry, int flags) {
  if (::unlinkat(entry.directory(), entry.name(), flags) == 0 || errno == ENOENT) return;
  if (flags != 0 && (errno == ENOTEMPTY || errno == EEXIST)) return;
  throw EnvironmentError(
      fmt::format("cannot remove {}: {}", entry.path().string(), std::generic_category().message(errno)));
}

/// A directory that is no run, but what an interrupted removal leaves of one.
std::optional<fs::path> rest_of_removed(const fs::path& path) {
  for (const fs::path& rest : {path, path.is_relative() ? kRunsFolder / path : path})
    if (is_folder(rest) && state_of(rest) == RunDirState::vacant) return rest;
  return std::nullopt;
}

Run run_at(const fs::path& path) {
  Run opened = open_run(find_run(path));
  if (is_link(opened.path)) throw UsageError(opened.path.string() + " is a symbolic link, which is not followed");
  if (opened.state == RunState::running)
    throw UsageError(
        fmt::format("{} is running ({}); stop it before it is removed", opened.path.string(), opened.reason));
  return opened;
}

}  // namespace

RunRemoval plan_removal(const fs::path& run) try {
  const fs::path path = run.has_filename() ? run : run.parent_path();
  if (is_link(path))
    throw UsageError(fmt::format("{} is a symbolic link, which is not followed; name the run directory itself, {}",
                                 path.string(), fs::read_symlink(path).string()));
  std::optional<fs::path> run_dir;
  try {
    run_dir = run_at(path).path;
  } catch (const UsageError&) {
    if (!(run_dir = rest_of_removed(path))) throw;
  }
  return Planner(*run_dir).plan();
} catch (const fs::filesystem_error& error) {
  throw EnvironmentError(fmt::format("cannot read {}: {}", error.path1().string(), error.code().message()));
}

void remove(const RunRemoval& removal) {
  const auto check_same = [&](const FileAt& run) {
    if (!is_at(run, removal.directory.fd()))
      throw UsageError(fmt::format("{} is not the directory that was to be removed: it was moved or replaced meanwhile",
                                   removal.run.string()));
  };
  check_same(removal.run);
  RunLock lock(removal.run, {});
  const Directory& run = lock.directory();
  check_same(run.at(removal.run));
  for (const fs::path& file : removal.files)
    if (!identifies_run(file, removal.run)) remove_entry(run.at(file), 0);
  for (const fs::path& folder : removal.folders)
    if (folder != removal.run) remove_entry(run.at(folder), AT_REMOVEDIR);
  for (const fs::path& file : removal.files)
    if (identifies_run(file, removal.run)) remove_entry(run.at(file), 0);
  lock.release();  // removes its file
  if (is_at(removal.run, run.fd())) remove_entry(removal.run, AT_REMOVEDIR);
}

}  // namespace gradring::train
