// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/shared_memory/process_handle.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "kernels/base/error.h"
#include "tests/support/deny_system_call.h"
#include "tests/support/no_more_files.h"
#include "tests/support/sanitizer.h"

namespace gradring::comm {
namespace {

/// A child that sleeps until it is killed.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ == 0)
      for (;;) ::pause();
  }
  ~Sleeper() { reap(); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  pid_t pid() const { return pid_; }
  /// Kills it and waits for its end, but leaves it as a zombie.
  void kill() const {
    siginfo_t end{};
    ::kill(pid_, SIGKILL);
    ::waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOWAIT);
  }
  void reap() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

/// Checks a handle while a process runs, is a zombie, and is reaped. Returns the error, or "".
std::string check_lifetime() try {
  Sleeper sleeper;
  const int pid = sleeper.pid();
  const ProcessHandle handle(pid);
  if (handle.gone()) return "gone although it runs";
  sleeper.kill();
  if (!handle.gone()) return "not gone although it is a zombie";
  sleeper.reap();
  if (!handle.gone()) return "not gone although it is reaped";
  return ProcessHandle(pid).gone() ? "" : "not gone although it does not exist";
} catch (const std::exception& error) {
  return error.what();
}

TEST(ProcessHandle, DetectsTheEndOfAProcess) { EXPECT_EQ(check_lifetime(), ""); }

TEST(ProcessHandle, ReportsWhyItCannotWatch) {
  // UBSan needs a descriptor to inspect an object, and reports objects that it cannot inspect as invalid.
  if (tests::kSanitizer == "address") GTEST_SKIP() << "UBSan cannot work without descriptors";
  std::string message = "nothing";
  try {
    const tests::NoMoreFiles limit;
    const ProcessHandle handle(::getpid());
  } catch (const DeviceError& error) {
    message = error.what();
  }
  EXPECT_THAT(message, ::testing::HasSubstr("cannot watch process"));
  EXPECT_THAT(message, ::testing::HasSubstr("Too many open files"));
}

class ProcessHandleWithoutPidfd : public ::testing::TestWithParam<int> {};

TEST_P(ProcessHandleWithoutPidfd, WatchesThePid) {
  constexpr int kNoFilter = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    if (!tests::deny_system_call(SYS_pidfd_open, GetParam())) ::_exit(kNoFilter);
    const std::string fault = check_lifetime();
    if (!fault.empty()) [[maybe_unused]]
      const auto written = ::write(STDERR_FILENO, (fault + "\n").data(), fault.size() + 1);
    ::_exit(fault.empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "the kernel does not support seccomp filters here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

INSTANTIATE_TEST_SUITE_P(Errors, ProcessHandleWithoutPidfd, ::testing::Values(ENOSYS, EPERM, EACCES));

}  // namespace
}  // namespace gradring::comm
