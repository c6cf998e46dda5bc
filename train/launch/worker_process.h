// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <string>
#include <vector>

#include "kernels/runtime/file.h"
#include "train/launch/reaper.h"
#include "train/launch/signals.h"
#include "train/launch/worker_environment.h"
#include "train/launch/workers.h"

namespace gradring::train {

struct WorkerCommand {
  std::string program;  ///< a path, or a name looked up in PATH
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  ///< "NAME=value", complete
  int out = -1, err = -1;                ///< its stdout and stderr; -1: inherited
};

/// This process's environment without the agents' token, with `defaults` where unset and `overrides` in any case.
std::vector<std::string> extended_environment(const Variables& overrides, const Variables& defaults);

/// One worker: a child process that leads its own session and process group. The kernel kills it when the launching
/// thread ends. The owner waits until fd() is readable, then calls reap().
class WorkerProcess {
 public:
  /// Starts the process without waiting for its program to begin; reap() tells whether that could be executed. The
  /// reaper knows the new group before the program begins.
  ///
  /// Errors    DeviceError if the system runs out of processes or files.
  static WorkerProcess start(int rank, const WorkerCommand& command, const SignalScope& signals, Reaper& reaper);

  int rank() const { return rank_; }
  pid_t pid() const { return pid_; }
  /// Readable once the process has ended; -1 after reap().
  int fd() const { return process_.get(); }
  bool running() const { return bool(process_); }

  /// Sends a signal to its process group.
  void send(int number) noexcept;
  /// Collects the exit status and kills the rest of the group. Call once, when fd() is readable.
  WorkerExit reap() noexcept;

 private:
  int rank_ = 0;
  pid_t pid_ = -1;
  UniqueFd process_;
  UniqueFd exec_error_;  ///< pipe that holds errno if the program could not be executed
  std::bitset<NSIG> sent_;
};

}  // namespace gradring::train
