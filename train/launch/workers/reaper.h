// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "kernels/base/file.h"
#include "train/launch/workers/run_folder.h"

namespace gradring::train {

/// A small process that cleans up if the launcher dies, for whatever reason: it kills the process groups of the
/// workers, with all that these started, and removes the run folder and the link to it. The kernel kills the workers
/// themselves (PR_SET_PDEATHSIG), but not their children.
///
/// It detects the death as the end of a stream whose other end only the launcher holds. It has its own session, so that
/// Ctrl-C and a kill of the launcher's group do not reach it.
///
/// Threads   the process that creates it has no other thread.
/// Errors    DeviceError if the system runs out of processes or files.
class Reaper {
 public:
  /// Starts before there is a folder: if the launcher dies in between, the folder is removed as a stale one.
  Reaper();
  /// Ends the process without cleaning up.
  ~Reaper();
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  /// Removes the folder when the launcher dies; the reaper shares its lock from here on.
  ///
  /// Errors    DeviceError if the system runs out of memory.
  void remove_on_death(const RunFolder& folder);
  /// Kills this group when the launcher dies, until forget(group). May be called between fork and exec, so that a
  /// worker registers before it can have children.
  void watch(pid_t group) noexcept { send(group); }
  void forget(pid_t group) noexcept { send(-group); }
  /// A child of this process has ended: if it is the reaper, the run continues without one.
  void note_end(pid_t pid) noexcept;

 private:
  void send(pid_t group) noexcept;

  UniqueFd launcher_end_;
  pid_t pid_ = -1;
};

}  // namespace gradring::train
