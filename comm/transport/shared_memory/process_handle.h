// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/runtime/unique_fd.h"

namespace gradring::comm {

/// Another process, watched from outside. Holds on to that very process: its number may be given to another one later.
/// Where the system refuses to hand out handles (an old kernel, a container's filter), it watches the number.
class ProcessHandle {
 public:
  /// Errors    DeviceError if the process cannot be watched, say because this one has too many files open.
  explicit ProcessHandle(int pid);

  int pid() const { return pid_; }
  /// Whether it has ended, even if its parent has not taken note of that yet.
  bool gone() const;
  /// Whether a signal has stopped it.
  bool stopped() const;

 private:
  int pid_;
  UniqueFd handle_;  // empty if the process was gone already, or handles are refused
  bool gone_from_the_start_ = false;
};

}  // namespace gradring::comm
