// SPDX-License-Identifier: Apache-2.0
#include "train/launch/workers/signals.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/base/error.h"

namespace gradring::train {
namespace {

constexpr int kAlwaysTaken[] = {SIGUSR1, SIGUSR2, SIGTSTP};

}  // namespace

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

int stopping_signal(const std::string& name) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    if (name == signal_name(number)) return number;
  return 0;
}

int exit_code_after(int signal) { return 128 + (signal == SIGINT || signal == SIGQUIT ? signal : SIGTERM); }

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool signal_group(pid_t group, int number) noexcept { return group > 1 && ::kill(-group, number) == 0; }

void reap_adopted_children(const std::function<bool(pid_t)>& is_own) {
  while (true) {
    siginfo_t info{};  // WNOWAIT: the zombie of a worker holds its group number until the launcher has killed the group
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0 || is_own(info.si_pid)) return;
    ::waitid(P_PID, static_cast<id_t>(info.si_pid), &info, WEXITED | WNOHANG);
  }
}

SignalScope::SignalScope(std::span<const int> stopping) {
  ::sigemptyset(&taken_);
  for (const int number : kAlwaysTaken) ::sigaddset(&taken_, number);
  for (const int number : stopping)
    if (number != SIGHUP || !is_ignored(SIGHUP)) ::sigaddset(&taken_, number);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::sigaddset(&taken_, SIGCHLD);  // wakes poll()
  events_ = UniqueFd(::signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!events_)
    throw DeviceError(std::string("cannot create a signal descriptor: ") + std::strerror(errno) + "; raise ulimit -n");

  ::sigprocmask(SIG_BLOCK, &taken_, &mask_before_);
  // If SIGCHLD is ignored, the kernel reaps children and their exit codes are lost.
  struct sigaction normal {};
  normal.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &normal, &child_before_);
}

SignalScope::~SignalScope() {
  while (take() != 0) {  // a late third Ctrl-C must not end the process that called launch()
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

int SignalScope::take() {
  signalfd_siginfo event{};
  do {
    if (::read(events_.get(), &event, sizeof(event)) != sizeof(event)) return 0;
  } while (event.ssi_signo == SIGCHLD);
  return static_cast<int>(event.ssi_signo);
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
