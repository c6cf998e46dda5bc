// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/base/file.h"

namespace gradring::comm {

/// A handle to another process (pidfd), which stays valid if the pid is reused. Where pidfds are unavailable (an old
/// kernel, a container's seccomp filter), it watches the pid.
class ProcessHandle {
 public:
  /// Errors    DeviceError if the process cannot be watched, for example because of too many open files.
  explicit ProcessHandle(int pid);

  int pid() const { return pid_; }
  /// Whether it has ended, even if it is still a zombie.
  bool gone() const;
  /// Whether a signal has stopped it.
  bool stopped() const;

 private:
  int pid_;
  UniqueFd handle_;  // empty if the process was gone, or pidfds are unavailable
  bool gone_at_open_ = false;
};

}  // namespace gradring::comm
