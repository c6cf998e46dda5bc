// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <string>
#include <vector>

#include "kernels/runtime/unique_fd.h"
#include "train/launch/guard.h"
#include "train/launch/signal_scope.h"
#include "train/launch/worker_environment.h"
#include "train/launch/worker_exit.h"

namespace gradring::train {

struct WorkerCommand {
  std::string program;  ///< a path, or a name looked up along PATH
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  ///< "NAME=value", all of it
  int out = -1, err = -1;                ///< what it gets as stdout and stderr; -1: this process's own
};

/// This process's environment with `defaults` added where they are not set, and `overrides` wherever.
std::vector<std::string> extended_environment(const Variables& overrides, const Variables& defaults);

/// One worker: a child process, leader of a session and process group of its own, that the kernel kills when the
/// launching thread ends. Whoever makes one waits for fd() to become readable and then calls reap().
class WorkerProcess {
 public:
  /// Starts it; does not wait for its program to begin. Whether the program could be executed is known at reap(). The
  /// new group is known to the guard before the program begins.
  ///
  /// Errors    DeviceError if the system has no more processes or files to give.
  static WorkerProcess start(int rank, const WorkerCommand& command, const SignalScope& signals, Guard& guard);

  int rank() const { return rank_; }
  pid_t pid() const { return pid_; }
  /// Readable once the process has ended; -1 after reap().
  int fd() const { return process_.get(); }
  bool running() const { return bool(process_); }

  /// Sends a signal to all processes of its group.
  void send(int number) noexcept;
  /// Collects how it ended and kills what is left of its group. To be called once, when fd() is readable.
  WorkerExit reap() noexcept;

 private:
  int rank_ = 0;
  pid_t pid_ = -1;
  UniqueFd process_;
  UniqueFd exec_error_;  ///< holds errno if the program could not be executed
  std::bitset<NSIG> sent_;
};

}  // namespace gradring::train
