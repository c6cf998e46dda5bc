// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <span>

#include "kernels/runtime/unique_fd.h"

namespace gradring::train {

/// While it lives, the signals that concern a launcher come as readable events of a descriptor, for poll(), instead of
/// interrupting. SIGHUP stays ignored where it was (nohup). SIGINT does not: a launcher in the background of a script
/// (`launch ... &`), where the shell ignores it, is still stopped by kill -INT.
///
/// Threads   the process has no other thread.
/// Errors    DeviceError if the system gives no descriptor.
class SignalScope {
 public:
  /// Takes the signals of `stopping` that would end the process, and those that a launcher always takes.
  explicit SignalScope(std::span<const int> stopping);
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

  int fd() const { return events_.get(); }
  /// The next signal that has come, 0 if none. Does not wait.
  int take();
  /// Lets SIGTSTP do what it does by default: stops this process until it is continued.
  void stop_self();

  /// In a child, between fork and exec: the mask as it was before, and default dispositions for what the launcher
  /// takes.
  void restore_in_child() const;

 private:
  sigset_t taken_;
  sigset_t mask_before_;
  struct sigaction child_before_;
  UniqueFd events_;
};

}  // namespace gradring::train
