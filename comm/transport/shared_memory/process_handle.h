// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/unique_fd.h"

namespace gradring::comm {

/// Another process, watched from outside. Holds on to that very process: its number may be given to another one later.
class ProcessHandle {
 public:
  explicit ProcessHandle(int pid);

  int pid() const { return pid_; }
  /// Whether it has ended, even if its parent has not taken note of that yet.
  bool gone() const;
  /// Whether a signal has stopped it.
  bool stopped() const;

 private:
  int pid_;
  UniqueFd handle_;  // empty if the process was gone already
};

}  // namespace gradring::comm
