// SPDX-License-Identifier: Apache-2.0
#include "train/launch/guard.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "kernels/runtime/error.h"
#include "train/launch/signal_group.h"

namespace gradring::train {
namespace {

constexpr int kAttempts = 50;
constexpr auto kBetweenAttempts = std::chrono::milliseconds(20);

/// The guard's whole life. A word from the launcher is a group to watch, or minus a group to forget; the end of the
/// stream is the launcher's.
[[noreturn]] void stand_guard(int launcher, const std::filesystem::path& folder) {
  ::setsid();
  ::prctl(PR_SET_NAME, "gradring-guard");
  sigset_t every;
  ::sigfillset(&every);
  ::sigprocmask(SIG_SETMASK, &every, nullptr);
  if (::chdir("/") != 0) ::_exit(1);

  std::set<pid_t> groups;
  for (pid_t word = 0; ::read(launcher, &word, sizeof(word)) == sizeof(word);)
    word > 0 ? void(groups.insert(word)) : void(groups.erase(-word));

  for (const pid_t group : groups) signal_group(group, SIGKILL);
  // A dying worker may still be adding a file: try until the folder is gone.
  std::error_code error;
  for (int i = 0; i < kAttempts; ++i) {
    std::filesystem::remove_all(folder, error);
    if (!error) break;
    std::this_thread::sleep_for(kBetweenAttempts);
  }
  ::_exit(0);
}

}  // namespace

Guard::Guard(const std::filesystem::path& folder) {
  int ends[2];
  const bool connected = ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0;
  check<DeviceError>(connected, std::string("cannot connect the launcher's guard: ") + std::strerror(errno));
  const UniqueFd guard_end(ends[0]);
  launcher_end_ = UniqueFd(ends[1]);
  pid_ = ::fork();
  check<DeviceError>(pid_ >= 0, std::string("cannot start the launcher's guard: ") + std::strerror(errno));
  if (pid_ == 0) {
    launcher_end_.reset();
    stand_guard(guard_end.get(), folder);
  }
}

Guard::~Guard() {
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guard::watch(pid_t group) noexcept { tell(group); }

void Guard::forget(pid_t group) noexcept { tell(-group); }

void Guard::tell(pid_t word) noexcept {
  // Somebody may have killed the guard: the run goes on without one.
  ::send(launcher_end_.get(), &word, sizeof(word), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace gradring::train
