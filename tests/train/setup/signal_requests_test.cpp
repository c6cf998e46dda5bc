// SPDX-License-Identifier: Apache-2.0
#include "train/setup/signal_requests.h"

#include <gtest/gtest.h>
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
  std::this_thread::sleep_for(std::chrono::minutes(1));
  std::_Exit(kWrong);
}

TEST_F(SignalRequestsDeathTest, EndTheProcessBeforeThereIsAnythingToSave) {
  EXPECT_EXIT(hang_up_before_training(), ::testing::KilledBySignal(SIGTERM), "");
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

TEST_F(SignalRequestsDeathTest, LeaveAHangupIgnoredUnderNohup) {
  EXPECT_EXIT(hang_up_under_nohup(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gradring::train
