// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <span>
#include <string>

#include "kernels/base/file.h"

namespace gradring::train {

/// "SIGTERM"; "signal 63" for one without a name.
std::string signal_name(int number);

/// The number of SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 or SIGUSR2, the signals that may end a run; 0 for others.
int stopping_signal(const std::string& name);

/// The exit code of a run that a signal ended: 130 for SIGINT, 131 for SIGQUIT, 143 for every other, as for SIGTERM.
int exit_code_after(int signal);

/// Whether this process ignores a signal, such as SIGHUP under nohup.
bool is_ignored(int signal);

/// Sends a signal to every process of a group. Refuses groups 0 and 1, which kill() would take for the caller's own
/// group and for all processes.
///
/// Returns   whether the group exists.
/// Errors    none: may be called between fork and exec, and in destructors.
bool signal_group(pid_t group, int number) noexcept;

/// Reaps adopted children that have ended, so that no zombies remain. Does not wait. `is_own` tells whether a pid is
/// reaped elsewhere; those behind it are found once that has happened.
void reap_adopted_children(const std::function<bool(pid_t)>& is_own);

/// While it lives, the launcher's signals arrive as readable events of a descriptor for poll(), and this process adopts
/// the orphans of its descendants (PR_SET_CHILD_SUBREAPER). SIGHUP stays ignored if
/// it was (nohup). SIGINT does not: a launcher in the background of a script, where the shell ignores it, still stops
/// after kill -INT.
///
/// Threads   the process has no other thread.
/// Errors    DeviceError if the system has no descriptor left.
class SignalScope {
 public:
  /// Takes the signals of `stopping`, and those that a launcher always handles.
  explicit SignalScope(std::span<const int> stopping);
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

  /// Also readable when an adopted child has ended.
  int fd() const { return events_.get(); }
  /// The next pending signal, else 0. Does not wait.
  int take();
  /// Performs the default action of SIGTSTP: stops this process until SIGCONT.
  void stop_self();

  /// In a child, between fork and exec: restores the signal mask, and the default dispositions of the taken signals.
  void restore_in_child() const;

 private:
  sigset_t taken_;
  sigset_t mask_before_;
  struct sigaction child_before_;
  UniqueFd events_;
};

}  // namespace gradring::train
