// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "kernels/base/file.h"
#include "train/launch/workers/private_folder.h"

namespace gradring::train {

/// Removes a run folder, its marker last, so that the next launcher recognizes what an interruption leaves. Follows no
/// link, and removes nothing of another user.
///
/// Returns   the first error, if the folder still exists.
std::error_code remove_run_folder(const std::filesystem::path& path);

/// "process 4711", "process 4711, run directory /runs/a": this process, for messages that tell two runs apart.
std::string describe_process(const std::string& run_dir);

/// A private folder for one run, mode 0700, in $TMPDIR or /tmp (not $XDG_RUNTIME_DIR, which vanishes at logout while
/// background runs continue). Holds store/ (by which ranks find each other), error_<local rank>.json and
/// progress_<local rank>. The destructor removes it.
///
/// While the run lives, the launcher and its reaper hold a lock on the folder (flock). If all processes are killed at
/// once, the folder stays without a lock; the next RunFolder removes it, by its name and the marker file inside.
/// systemd-tmpfiles also leaves locked folders alone.
///
/// `run_dir`: the directory of results, for messages to other processes.
///
/// Errors    DeviceError that says where and why, if the folder cannot be created and locked.
class RunFolder {
 public:
  explicit RunFolder(const std::filesystem::path& parent = temporary_folder(), const std::string& run_dir = "");
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path store() const { return path_ / "store"; }
  std::filesystem::path error_file(int local_rank) const;
  std::filesystem::path progress_file(int local_rank) const;
  /// Where the run folder `path` keeps the agents' token, if it has one (nodes/token.h).
  static std::filesystem::path token_file(const std::filesystem::path& path);
  /// Where rank 0 says which run directory it has locked (app/rank/run_output.cpp), for ranks that are started again.
  static std::filesystem::path run_directory_file(const std::filesystem::path& path);
  /// Prepares another attempt: an empty store, no error files. Keeps the token, the progress and the run directory.
  void renew();
  /// Whose the run folder `path` is: describe_process() of its creator; "unknown process" if it is gone.
  static std::string owner(const std::filesystem::path& path);
  /// The descriptor that holds the lock.
  int lock() const { return lock_.get(); }

  /// Whether the launcher that created the folder `path`, for this user, still lives.
  static bool is_held(const std::filesystem::path& path);

  /// Removes the folders of this user's killed runs in `parent`, and no other folder with such a name.
  static void remove_stale(const std::filesystem::path& parent);

 private:
  std::filesystem::path path_;
  UniqueFd lock_;
};

/// Identifies a run to the processes that belong to it.
struct RunName {
  std::string_view kind;  ///< what they look for: "meet", "token"
  std::string run_id;
  int port = 0;
  int attempt = 0;
  std::string key = {};  ///< hexadecimal digits that set apart runs with equal id, port and attempt; may be empty
};

/// Makes a run folder known to other processes of this user: a symbolic link in the user's private folder. It is
/// ignored once the process that created the run folder has ended.
class RunLink {
 public:
  /// Creates the link, and removes stale ones.
  ///
  /// Errors    DeviceError if a live run has that name for 5 s, or if the private folder cannot be used.
  RunLink(PrivateFolder links, const RunName& name, const RunFolder& folder);
  ~RunLink();
  RunLink(const RunLink&) = delete;
  RunLink& operator=(const RunLink&) = delete;

  /// The run folder to which a live process gave that name.
  ///
  /// Errors    DeviceError if the private folder belongs to another user, or is accessible to others.
  static std::optional<std::filesystem::path> follow(const PrivateFolder& links, const RunName& name);

  /// The run folders that live processes gave names which differ from `name` in their key only.
  ///
  /// Errors    as follow.
  static std::vector<std::filesystem::path> others(const PrivateFolder& links, const RunName& name);

  /// Removes the links of ended runs. Failures are left to the next run.
  static void remove_stale(const PrivateFolder& links) noexcept;

 private:
  PrivateFolder links_;
  std::string name_;
  std::filesystem::path target_;
};

}  // namespace gradring::train
