// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>

#include "kernels/base/file.h"
#include "train/launch/workers/run_folder.h"

namespace gradring::train {

// All processes that the workers of a run have started, and those that these have started, also in sessions of their
// own. Where this process may make control groups (version 2), the workers of a run folder are in one, and so are their
// descendants. Elsewhere these are known by the variable GRADRING_STORE that they have inherited, or as descendants of a
// process that has it, or that the launcher has adopted.

/// Makes the control group of a run.
///
/// Returns   its cgroup.procs, to which a process writes 0 to enter it; empty where that is not possible.
UniqueFd make_control_group(const std::filesystem::path& run_folder);

/// Kills all processes of the run until none is left, for `timeout` at most, but no reaper. `adopter`: a process whose
/// children in other sessions are of the run; 0: none.
void kill_run_processes(const std::filesystem::path& run_folder, std::chrono::nanoseconds timeout,
                        pid_t adopter) noexcept;

/// Removes the control group unless it has processes.
void remove_control_group(const std::filesystem::path& run_folder) noexcept;

/// A small process that cleans up if the launcher dies, for whatever reason: it kills the process groups of the
/// workers, and all that these started, and removes the run folder and the link to it. The kernel kills
/// the workers themselves (PR_SET_PDEATHSIG), but not their children.
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
