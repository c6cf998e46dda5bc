// SPDX-License-Identifier: Apache-2.0
#include "train/launch/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "kernels/runtime/error.h"

namespace gradring::train {
namespace {

// glibc 2.36 declares these, but without extern "C".
int pidfd_open(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }
void pidfd_send_signal(int process, int number) { ::syscall(SYS_pidfd_send_signal, process, number, nullptr, 0); }

/// Null-terminated array for exec, valid as long as `texts`.
std::vector<char*> c_strings(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const auto& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// The child between fork and exec: only async-signal-safe calls and memory allocated before.
[[noreturn]] void become(const WorkerCommand& command, char* const* argv, char* const* environment, pid_t launcher,
                         const SignalScope& signals, Reaper& reaper, int exec_error) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(kCannotExecute);  // the launcher died before prctl
  reaper.watch(::getpid());
  signals.restore_in_child();
  if (command.out >= 0) ::dup2(command.out, STDOUT_FILENO);
  if (command.err >= 0) ::dup2(command.err, STDERR_FILENO);
  ::execvpe(command.program.c_str(), argv, environment);
  const int reason = errno;
  [[maybe_unused]] const auto written = ::write(exec_error, &reason, sizeof(reason));
  ::_exit(reason == ENOENT ? kNotFound : kCannotExecute);
}

DeviceError cannot_start(int rank, int reason) {
  return DeviceError(fmt::format("cannot start the worker of rank {}: {}", rank, std::strerror(reason)));
}

}  // namespace

std::vector<std::string> extended_environment(const Variables& overrides, const Variables& defaults) {
  std::map<std::string, std::string> merged(defaults.begin(), defaults.end());
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (char* sign = std::strchr(*entry, '=')) merged[std::string(*entry, sign)] = sign + 1;
  for (const char* secret : {kTokenVariable, kTokenFileVariable}) merged.erase(secret);
  for (const auto& [name, value] : overrides) merged[name] = value;

  std::vector<std::string> environment;
  for (const auto& [name, value] : merged) environment.push_back(name + "=" + value);
  return environment;
}

WorkerProcess WorkerProcess::start(int rank, const WorkerCommand& command, const SignalScope& signals, Reaper& reaper) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw cannot_start(rank, errno);
  WorkerProcess worker;
  worker.rank_ = rank;
  worker.exec_error_ = UniqueFd(ends[0]);
  const UniqueFd child_end(ends[1]);

  std::vector<std::string> command_line = {command.program};
  command_line.insert(command_line.end(), command.arguments.begin(), command.arguments.end());
  const auto argv = c_strings(command_line);
  const auto environment = c_strings(command.environment);
  const pid_t launcher = ::getpid();
  worker.pid_ = ::fork();
  if (worker.pid_ < 0) throw cannot_start(rank, errno);
  if (worker.pid_ == 0) become(command, argv.data(), environment.data(), launcher, signals, reaper, child_end.get());

  worker.process_ = UniqueFd(pidfd_open(worker.pid_));  // always CLOEXEC
  if (!worker.process_) {
    const int reason = errno;
    ::kill(worker.pid_, SIGKILL);
    ::waitpid(worker.pid_, nullptr, 0);
    throw cannot_start(rank, reason);
  }
  return worker;
}

void WorkerProcess::send(int number) noexcept {
  sent_.set(static_cast<std::size_t>(number));
  // Just after fork the group does not exist yet.
  if (!signal_group(pid_, number)) pidfd_send_signal(process_.get(), number);
}

WorkerExit WorkerProcess::reap() noexcept {
  // The zombie still holds the group number, so no other group can have it.
  signal_group(pid_, SIGKILL);
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(process_.get()), &info, WEXITED) != 0 && errno == EINTR) {
  }
  process_.reset();

  WorkerExit exit{.rank = rank_, .pid = pid_, .sent = sent_};
  (info.si_code == CLD_EXITED ? exit.code : exit.signal) = info.si_status;
  int reason = 0;
  if (::read(exec_error_.get(), &reason, sizeof(reason)) == sizeof(reason)) exit.exec_error = reason;
  return exit;
}

}  // namespace gradring::train
