// SPDX-License-Identifier: Apache-2.0
#include "train/runs/remove_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>
#include <system_error>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/options/usage_error.h"
#include "train/report/environment_error.h"
#include "train/report/line_file.h"
#include "train/runs/run.h"
#include "train/setup/run_directory.h"
#include "train/setup/run_lock.h"

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

bool is_config(const std::string& name) {
  static const std::regex kName("config\\.resolved(-[1-9][0-9]*)?\\.toml");
  return std::regex_match(name, kName);
}

/// A file directly in a run directory that does not identify it as one.
bool is_result(const fs::path& path, const fs::path& run) {
  if (!is_file(path)) return false;
  return path == summary_of(run) || path == temporary_of(summary_of(run)) || path == temporary_of(first_config(run));
}

/// Sorts what a run directory holds into what gradring wrote and what it did not.
class Planner {
 public:
  explicit Planner(const fs::path& run) { removal_.run = run; }

  RunRemoval plan() {
    std::vector<fs::path> last;
    for (const fs::path& path : sorted(removal_.run)) {
      const std::string name = path.filename();
      if (path == checkpoints_of(removal_.run) && is_folder(path))
        add_checkpoints(path);
      else if (path == log_file(removal_.run, 0).parent_path() && is_folder(path))
        add_folder(path, is_rank_log);
      else if (path == tensorboard_of(removal_.run) && is_folder(path))
        add_folder(path, is_event_file);
      else if (is_result(path, removal_.run))
        add_file(path);
      else if (is_file(path) && (is_config(name) || path == metrics_of(removal_.run)))
        last.push_back(path);
      else if (name != kRunLockFile || !is_file(path) || !is_run_lock(path))
        removal_.kept.push_back(path);
    }
    for (const fs::path& path : last) add_file(path);  // a run directory is recognized by these
    removal_.folders.push_back(removal_.run);
    return std::move(removal_);
  }

 private:
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
      if (is_folder(path) && step_folder_at(path))
        add_folder(path, is_checkpoint_file);
      else if (is_checkpoint_link(path))
        add_file(path);
      else
        removal_.kept.push_back(path);
    removal_.folders.push_back(root);
  }

  RunRemoval removal_;
};

[[noreturn]] void fail(const fs::path& path, const std::error_code& error) {
  throw EnvironmentError(fmt::format("cannot remove {}: {}", path.string(), error.message()));
}

}  // namespace

RunRemoval plan_removal(const fs::path& run) try {
  const fs::path path = run.has_filename() ? run : run.parent_path();
  if (is_link(path))
    throw UsageError(fmt::format("{} is a symbolic link, which is not followed; name the run directory itself, {}",
                                 path.string(), fs::read_symlink(path).string()));
  const Run opened = open_run(find_run(path));
  if (is_link(opened.path)) throw UsageError(opened.path.string() + " is a symbolic link, which is not followed");
  if (opened.state == RunState::running)
    throw UsageError(
        fmt::format("{} is running ({}); stop it before it is removed", opened.path.string(), opened.reason));
  return Planner(opened.path).plan();
} catch (const fs::filesystem_error& error) {
  throw EnvironmentError(fmt::format("cannot read {}: {}", error.path1().string(), error.code().message()));
}

void remove(const RunRemoval& removal) {
  RunLock lock(removal.run, {});
  std::error_code error;
  for (const fs::path& file : removal.files)
    if (!fs::remove(file, error) && error) fail(file, error);
  const fs::path& run = removal.run;
  for (const fs::path& folder : removal.folders) {
    if (folder == run) lock.release();  // removes its file
    fs::remove(folder, error);
    if (error && error != std::errc::directory_not_empty) fail(folder, error);
  }
}

}  // namespace gradring::train
