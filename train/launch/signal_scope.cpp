// SPDX-License-Identifier: Apache-2.0
#include "train/launch/signal_scope.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "kernels/runtime/error.h"
#include "train/launch/signal_name.h"

namespace gradring::train {
namespace {

constexpr int kAlwaysTaken[] = {SIGUSR1, SIGUSR2, SIGTSTP};

}  // namespace

SignalScope::SignalScope(std::span<const int> stopping) {
  ::sigemptyset(&taken_);
  for (const int number : kAlwaysTaken) ::sigaddset(&taken_, number);
  for (const int number : stopping)
    if (number != SIGHUP || !is_ignored(SIGHUP)) ::sigaddset(&taken_, number);
  events_ = UniqueFd(::signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK));
  check<DeviceError>(bool(events_), std::string("cannot watch for signals: ") + std::strerror(errno));

  ::sigprocmask(SIG_BLOCK, &taken_, &mask_before_);
  // Where SIGCHLD is ignored, the kernel reaps children by itself and their exit codes are lost.
  struct sigaction normal {};
  normal.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &normal, &child_before_);
}

SignalScope::~SignalScope() {
  while (take() != 0) {  // a third Ctrl-C, come too late, does not end the process that called launch()
  }
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

int SignalScope::take() {
  signalfd_siginfo event{};
  return ::read(events_.get(), &event, sizeof(event)) == sizeof(event) ? static_cast<int>(event.ssi_signo) : 0;
}

void SignalScope::stop_self() {
  sigset_t stop;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // stops here, until SIGCONT
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
}

void SignalScope::restore_in_child() const {
  struct sigaction normal {};
  normal.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number)
    if (::sigismember(&taken_, number) == 1) ::sigaction(number, &normal, nullptr);
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

}  // namespace gradring::train
