// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "kernels/base/directory.h"

namespace gradring::train {

/// The lock on a run directory R: flock on R/.lock, and on R itself in case a user removes the file. (Both are needed:
/// NFS cannot lock directories.) Rank 0 holds it from before it reads a checkpoint there until its run has ended, so
/// that no two runs write into one directory. The kernel releases it when the process dies.
///
/// The file names the process that holds the lock. No process holds it between two starts of the ranks, so the file
/// also names the folder of their launcher (launch/run_folder.h). The directory belongs to its run while that launcher
/// lives.
///
/// The directory stays open, so that the run finds its files in it wherever it is moved, and never in another one that
/// has its path later.
///
/// Threads   one at a time; check_held and directory: any.
class RunLock {
 public:
  /// Holds no lock.
  RunLock() = default;
  /// Locks `run_dir`, which exists. `launch_folder` is that of a launcher that may restart the ranks of this run; empty
  /// if there is none. Does not lock on a file system without flock.
  ///
  /// Errors    UsageError if another run holds the lock: names its process, host and start, and changes nothing.
  ///           EnvironmentError if the file cannot be written.
  RunLock(const std::filesystem::path& run_dir, const std::filesystem::path& launch_folder);
  /// Releases the lock. Keeps the file if a launcher may restart the ranks.
  ~RunLock();
  RunLock(RunLock&& other) noexcept = default;
  RunLock& operator=(RunLock&& other) noexcept;

  explicit operator bool() const { return bool(file_); }
  /// Removes the file and releases the lock, at the end of the run. The directory stays open.
  void release() noexcept;
  /// The locked directory.
  const Directory& directory() const { return directory_; }
  /// Checks that the lock still has an object.
  ///
  /// Errors    LostDirectoryError if the directory was removed, or its file is that of another run (where directories
  ///           cannot be locked, that run could start once a user had removed the file).
  void check_held() const;

 private:
  bool try_lock(const std::filesystem::path& launch_folder);

  FileAt file() const;

  std::filesystem::path run_dir_;
  UniqueFd file_;
  Directory directory_;
  bool stays_ = false;
};

/// The file in a run directory.
inline constexpr const char* kRunLockFile = ".lock";

/// Whether a running process holds the lock of `run_dir`. Does not block and changes nothing.
bool is_locked(const std::filesystem::path& run_dir);

/// The process that wrote the lock file of a run directory.
struct RunLockHolder {
  std::string host{};     ///< empty: unknown
  std::int64_t pid = 0;   ///< of that host; 0: unknown
  bool is_alive = false;  ///< it holds the lock, or its launcher, which may restart it, lives on this host
};

/// Does not block and changes nothing. Nothing if there is no lock file. On a file system without flock, a process of
/// this host is alive if its number is in use.
std::optional<RunLockHolder> lock_holder(const std::filesystem::path& run_dir);

/// Whether the file `path` was written by a RunLock, or is empty.
bool is_run_lock(const std::filesystem::path& path);

}  // namespace gradring::train
