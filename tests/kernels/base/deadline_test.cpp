// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/base/deadline.h"

namespace gradring {
namespace {

TEST(PollUntil, PollsUntilDone) {
  int asked = 0;
  const PollPace pace{.spins = 3, .first_nap = std::chrono::nanoseconds(1), .longest_nap = std::chrono::nanoseconds(4)};
  EXPECT_TRUE(poll_until([&] { return ++asked == 10; }, Deadline::after(std::chrono::minutes(1)), pace));
  EXPECT_EQ(asked, 10);
}

TEST(PollUntil, PollsOnceWithoutTime) {
  const auto past = Deadline::after(std::chrono::nanoseconds(0));
  EXPECT_TRUE(poll_until([] { return true; }, past));
  EXPECT_FALSE(poll_until([] { return false; }, past));
}

TEST(PollUntil, StopsAtTheDeadline) {
  EXPECT_FALSE(poll_until([] { return false; }, Deadline::after(std::chrono::milliseconds(5))));
}

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

std::atomic<nanoseconds> source_time;

/// A clock whose source moves when the test says so.
class RunningTimes : public ::testing::Test {
 protected:
  static nanoseconds source() { return source_time; }
  static void pass(nanoseconds time) { source_time = source_time.load() + time; }

  RunningTime time_{(source_time = 5h, source)};
};

TEST_F(RunningTimes, CountsTimeBetweenCloseReadings) {
  const nanoseconds begin = time_.now();
  EXPECT_EQ(begin, 5h);
  for (int i = 0; i < 100; ++i) {
    pass(RunningClock::kLongestGap);
    time_.now();
  }
  EXPECT_EQ(time_.now() - begin, 100 * RunningClock::kLongestGap);
}

TEST_F(RunningTimes, CountsLittleOfALongGap) {
  const nanoseconds begin = time_.now();
  pass(1h);
  EXPECT_EQ(time_.now() - begin, RunningClock::kLongestGap);
  pass(10ms);
  EXPECT_EQ(time_.now() - begin, RunningClock::kLongestGap + 10ms);
  pass(24h);
  EXPECT_EQ(time_.now() - begin, 2 * RunningClock::kLongestGap + 10ms);
}

TEST_F(RunningTimes, SkipsAGapOnceForAllThreads) {
  constexpr int kGaps = 200;
  const nanoseconds begin = time_.now();
  std::atomic<int> gap = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      nanoseconds last{};
      while (gap < kGaps) {
        const nanoseconds now = time_.now();
        EXPECT_GE(now, last);
        last = now;
      }
    });
  for (; gap < kGaps; ++gap) {
    pass(1h);
    EXPECT_EQ(time_.now() - begin, (gap + 1) * RunningClock::kLongestGap);
  }
}

/// As the CUDA module uses the program's.
TEST_F(RunningTimes, CanBeSharedWithAnotherCopyOfTheClock) {
  RunningTime& own = RunningClock::time();
  RunningClock::use(time_);
  const auto begin = RunningClock::now();
  pass(10ms);
  EXPECT_EQ(RunningClock::now() - begin, 10ms);
  EXPECT_EQ(&RunningClock::time(), &time_);
  RunningClock::use(own);
  EXPECT_NE(RunningClock::now(), begin + 10ms);
}

TEST(Deadlines, LimitNapsSoThatNoGapIsMissed) {
  EXPECT_LT(RunningClock::kLongestNap, RunningClock::kLongestGap);
  const auto far = Deadline::after(1h);
  EXPECT_EQ(far.nap(), RunningClock::kLongestNap);
  EXPECT_EQ(far.nap(1h), RunningClock::kLongestNap);
  EXPECT_EQ(far.nap(3ms), 3ms);
  EXPECT_EQ(poll_timeout(far), RunningClock::kLongestNap.count());
  const auto past = Deadline::after(0s);
  EXPECT_EQ(past.nap(), 0s);
  EXPECT_EQ(poll_timeout(past), 0);
  EXPECT_EQ(poll_timeout(std::nullopt), -1);
}

TEST(WaitUntil, ReturnsWhetherItWasReady) {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  bool ready = false;
  EXPECT_FALSE(wait_until(changed, lock, Deadline::after(150ms), [&] { return ready; }));
  std::jthread other([&] {
    const std::lock_guard held(mutex);
    ready = true;
    changed.notify_all();
  });
  EXPECT_TRUE(wait_until(changed, lock, Deadline::after(1min), [&] { return ready; }));
  EXPECT_TRUE(wait_until(changed, lock, Deadline::after(0s), [&] { return ready; }));
}

/// A process that waits for up to a second, stops itself meanwhile, and is ready shortly after it has been continued.
/// Returns its exit code: 0 if it was still waiting then.
template <class Wait>
int code_of_stopped(const Wait& wait) {
  constexpr auto kStopped = 2500ms;
  const pid_t pid = ::fork();
  if (pid == 0) {
    int looks = 0;
    const bool waited = wait(Deadline::after(1s), [&] {
      if (looks == 0) ::raise(SIGSTOP);
      return ++looks > 2;
    });
    ::_exit(waited ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, WUNTRACED), pid);
  EXPECT_TRUE(WIFSTOPPED(status));
  std::this_thread::sleep_for(kStopped);
  ::kill(pid, SIGCONT);
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StoppedProcess, TimeDoesNotCountWhilePolling) {
  EXPECT_EQ(code_of_stopped([](Deadline deadline, const auto& ready) { return poll_until(ready, deadline); }), 0);
}

TEST(StoppedProcess, TimeDoesNotCountWhileSleeping) {
  EXPECT_EQ(code_of_stopped([](Deadline deadline, const auto& ready) {
              std::mutex mutex;
              std::condition_variable changed;
              std::unique_lock lock(mutex);
              return wait_until(changed, lock, deadline, ready);
            }),
            0);
}

}  // namespace
}  // namespace gradring
