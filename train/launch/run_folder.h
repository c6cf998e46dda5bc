// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "kernels/runtime/unique_fd.h"

namespace gradring::train {

/// A private folder for one run, 0700, under $TMPDIR or /tmp (not $XDG_RUNTIME_DIR, which vanishes at logout while runs
/// in the background go on). Holds store/, the files by which ranks meet, error_<local rank>.json for their last words,
/// and progress_<local rank>. It is removed when this object goes.
///
/// While its run lives, the folder is locked (flock), by the launcher and by its guard. A run whose every process was
/// killed at once leaves a folder without a lock: the next one to be created removes it, by its name and a marker file inside.
/// systemd-tmpfiles, too, leaves locked folders alone.
///
/// Errors    DeviceError if the folder cannot be made and locked: it says where and why.
class RunFolder {
 public:
  /// A folder beneath `parent`.
  explicit RunFolder(const std::filesystem::path& parent = default_parent());
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path store() const { return path_ / "store"; }
  std::filesystem::path error_file(int local_rank) const;
  std::filesystem::path progress_file(int local_rank) const;
  /// For another attempt: an empty store, no error files. What was reported of progress stays.
  void renew();
  /// The descriptor that holds the lock.
  int lock() const { return lock_.get(); }

  /// Whether the launcher that made the folder `path`, one of this user, still lives.
  static bool is_held(const std::filesystem::path& path);

  /// $TMPDIR, or /tmp where that is unset or too long for the path of a Unix socket within.
  static std::filesystem::path default_parent();

 private:
  std::filesystem::path path_;
  UniqueFd lock_;
};

}  // namespace gradring::train
