// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "kernels/runtime/unique_fd.h"

namespace gradring::train {

/// A small process that waits for the launcher's death, however it comes, and then clears up: it kills the process
/// groups that it was told of, with all that the workers started in them, and removes the run's folder. The kernel
/// kills the workers themselves at that moment anyway (PR_SET_PDEATHSIG); their children and the folder are what the
/// guard is for.
///
/// It learns of the death by the end of a stream whose other end only the launcher holds. It lives in a session of its
/// own, out of reach of Ctrl-C and of a kill of the launcher's group.
///
/// Threads   the process that makes one has no other thread.
/// Errors    DeviceError if the system has no more processes or files to give.
class Guard {
 public:
  explicit Guard(const std::filesystem::path& folder);
  /// All is well: ends the guard without letting it act.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// From now on, until forget(group), this group dies with the launcher. May be called between fork and exec: a worker
  /// tells of itself before it can have children.
  void watch(pid_t group) noexcept;
  void forget(pid_t group) noexcept;

 private:
  void tell(pid_t word) noexcept;

  UniqueFd launcher_end_;
  pid_t pid_ = -1;
};

}  // namespace gradring::train
