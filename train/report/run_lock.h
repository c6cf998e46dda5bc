// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "kernels/runtime/unique_fd.h"

namespace gradring::train {

/// The lock on a run directory: flock on R/.lock, and on R itself, which still holds where a user removes the file. (NFS locks
/// files that are open for writing, and so no directories: both are needed.) Rank 0's process holds it from before it reads a
/// checkpoint there until its run has ended, so that no two runs write into one directory. The kernel releases it when the
/// process dies, however that happens.
///
/// The file says who holds the lock. Between two starts of the ranks no process holds it, so the file also names the folder of
/// the launcher that starts them (launch/run_folder.h); as long as that launcher lives, the directory is its run's.
///
/// Threads   one at a time.
class RunLock {
 public:
  /// Holds nothing.
  RunLock() = default;
  /// Locks `run_dir`, which exists. `launch_folder` is that of a launcher that may start the ranks of this run again; empty if
  /// there is none. On a file system that does not support flock, nothing is locked.
  ///
  /// Errors    UsageError if another run holds the lock: names its process, host and start; nothing has changed then.
  ///           EnvironmentError if the file cannot be written.
  RunLock(const std::filesystem::path& run_dir, const std::filesystem::path& launch_folder);
  /// Releases the lock. The file stays only where a launcher may start the ranks again.
  ~RunLock();
  RunLock(RunLock&& other) noexcept = default;
  RunLock& operator=(RunLock&& other) noexcept;

  explicit operator bool() const { return bool(file_); }
  /// Removes the file and releases the lock: the run has ended for good.
  void release() noexcept;

 private:
  bool try_lock(const std::filesystem::path& launch_folder);

  std::filesystem::path run_dir_;
  UniqueFd file_;
  UniqueFd directory_;
  bool stays_ = false;
};

/// The name of the lock's file in a run directory.
inline constexpr const char* kRunLockFile = ".lock";

/// Whether a run that goes on holds the lock of `run_dir`. Waits for nothing and changes nothing.
bool is_locked(const std::filesystem::path& run_dir);

/// Whether a file of that name was written by a RunLock, or is empty.
bool is_run_lock(const std::filesystem::path& path);

}  // namespace gradring::train
