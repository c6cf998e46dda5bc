// SPDX-License-Identifier: Apache-2.0
#include "train/app/rank/signal_requests.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace gradring::train {
namespace {

constexpr int kWrong = 99;

/// What the signals sent to this process have asked for; waits until they have asked for something.
RunRequest next_request(SignalRequests& requests) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  RunRequest request = RunRequest::none;
  while (request == RunRequest::none && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    request = requests.take();
  }
  return request;
}

/// In a child of one thread, as a rank is when it makes its SignalRequests.
class SignalRequestsDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

[[noreturn]] void exit_as_asked_by(int signal) {
  SignalRequests requests("rank 0 of 1");
  requests.at({.doing = kTraining});
  ::kill(::getpid(), signal);
  std::_Exit(next_request(requests) == RunRequest::stop ? requests.exit_code() : kWrong);
}

TEST_F(SignalRequestsDeathTest, AreToStopAtAHangupAsAtSigterm) {
  EXPECT_EXIT(exit_as_asked_by(SIGTERM), ::testing::ExitedWithCode(143), "");
  EXPECT_EXIT(exit_as_asked_by(SIGHUP), ::testing::ExitedWithCode(143), "");
  EXPECT_EXIT(exit_as_asked_by(SIGINT), ::testing::ExitedWithCode(130), "");
}

[[noreturn]] void hang_up_before_training() {
  const SignalRequests requests("rank 0 of 1");
  ::kill(::getpid(), SIGHUP);
  std::this_thread::sleep_for(std::chrono::seconds(20));
  std::_Exit(kWrong);
}

TEST_F(SignalRequestsDeathTest, EndTheProcessBeforeThereIsAnythingToSave) {
  EXPECT_EXIT(hang_up_before_training(), ::testing::KilledBySignal(SIGTERM), "");
}

constexpr int kNoNamespace = 98;

/// `act` in a child that is process 1, which dies of no signal of its own; its exit code.
[[noreturn]] void exit_as_process_1(void (*act)()) {
  if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) std::_Exit(kNoNamespace);
  const pid_t child = ::fork();
  if (child == 0) act();
  int status = 0;
  ::waitpid(child, &status, 0);
  std::_Exit(child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : kWrong);
}

TEST_F(SignalRequestsDeathTest, EndProcess1BeforeThereIsAnythingToSave) {
  int code = 0;
  const auto ended = [&code](int status) { return WIFEXITED(status) && (code = WEXITSTATUS(status), true); };
  EXPECT_EXIT(exit_as_process_1([] { hang_up_before_training(); }), ended, "");
  if (code == kNoNamespace) GTEST_SKIP() << "no PID namespace may be made here";
  EXPECT_EQ(code, 143);
}

/// SIGHUP has the smaller number: were it taken, it would be taken before SIGUSR2.
[[noreturn]] void hang_up_under_nohup() {
  ::signal(SIGHUP, SIG_IGN);
  SignalRequests requests("rank 0 of 1");
  requests.at({.doing = kTraining});
  ::kill(::getpid(), SIGHUP);
  ::kill(::getpid(), SIGUSR2);
  std::_Exit(next_request(requests) == RunRequest::save ? 0 : kWrong);
}

[[noreturn]] void exit_after_late_requests() {
  { const SignalRequests requests("rank 0 of 1"); }
  ::kill(::getpid(), SIGUSR1);
  ::kill(::getpid(), SIGUSR2);
  std::_Exit(0);
}

TEST_F(SignalRequestsDeathTest, IgnoreRequestsToSaveOnceTheTrainingHasEnded) {
  EXPECT_EXIT(exit_after_late_requests(), ::testing::ExitedWithCode(0), "");
}

TEST_F(SignalRequestsDeathTest, LeaveAHangupIgnoredUnderNohup) {
  EXPECT_EXIT(hang_up_under_nohup(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gradring::train
