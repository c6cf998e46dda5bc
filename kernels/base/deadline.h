// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <ratio>

namespace gradring {

class RunningTime;

/// Time in which this process ran. Time in which it was stopped does not count: by a signal, the cgroup freezer, or a
/// paused virtual machine. So a rank that was stopped does not count that time against its peers, which were perhaps
/// stopped with it.
///
/// No system call reports how long a process was stopped. It shows in a gap between two readings: of each gap the clock
/// counts kLongestGap at most. Whoever waits must therefore sleep for kLongestNap at most before the next reading
/// (Deadline::nap). What passes without a reading, as in a call that blocks, counts too little: deadlines come late.
///
/// Threads   safe.
class RunningClock {
 public:
  using rep = std::chrono::nanoseconds::rep;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<RunningClock>;
  static constexpr bool is_steady = true;

  static constexpr std::chrono::milliseconds kLongestNap{100};
  /// Well above kLongestNap, because a thread on a busy machine wakes late.
  static constexpr std::chrono::milliseconds kLongestGap{300};

  static time_point now() noexcept;

  /// What this process counts with. The CUDA module, which has a copy of this code, is told to use the program's, for
  /// deadlines are passed between them.
  static RunningTime& time() noexcept;
  static void use(RunningTime& time) noexcept;
};

/// What RunningClock counts with. `source` reads the time since any fixed moment, without going back.
class RunningTime {
 public:
  using Source = std::chrono::nanoseconds (*)();

  explicit RunningTime(Source source) : source_(source), last_(source().count()) {}

  std::chrono::nanoseconds now() noexcept;

 private:
  Source source_;
  std::atomic<std::chrono::nanoseconds::rep> last_;          // what the source said at the last reading
  std::atomic<std::chrono::nanoseconds::rep> uncounted_{0};  // of all gaps until then
  std::mutex gap_;                                           // held by the thread that counts one
};

/// The moment at which a wait gives up. Every wait in gradring takes one; there is no infinite wait. Time in which this
/// process was stopped does not bring it closer.
class Deadline {
 public:
  using Clock = RunningClock;

  static Deadline after(std::chrono::nanoseconds duration) { return Deadline(Clock::now() + duration); }

  bool passed() const { return Clock::now() >= moment_; }
  /// Time left, never negative. Too long to sleep for at once: see nap.
  std::chrono::nanoseconds remaining() const {
    const auto left = moment_ - Clock::now();
    return left.count() > 0 ? left : std::chrono::nanoseconds(0);
  }
  /// How long a wait may sleep before it looks at the deadline again: the time left, `longest` and Clock::kLongestNap
  /// at most.
  std::chrono::nanoseconds nap(std::chrono::nanoseconds longest = Clock::kLongestNap) const {
    return std::min({remaining(), longest, std::chrono::nanoseconds(Clock::kLongestNap)});
  }

 private:
  explicit Deadline(Clock::time_point moment) : moment_(moment) {}
  Clock::time_point moment_;
};

/// What poll() is to be told so that it sleeps for one nap before the deadline is looked at again: milliseconds,
/// rounded up, 0 once the deadline has passed; without one, -1: as long as it takes. That poll() returns 0 does not
/// mean that the deadline has passed.
inline int poll_timeout(const std::optional<Deadline>& deadline) noexcept {
  if (!deadline) return -1;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(deadline->nap()).count());
}

/// std::this_thread::sleep_for, whose header is large.
void sleep_for(std::chrono::nanoseconds duration);

/// How poll_until polls: `spins` times without a pause, then with sleeps in between, each twice as long as the last.
struct PollPace {
  int spins = 200;
  std::chrono::nanoseconds first_nap = std::chrono::microseconds(1);
  std::chrono::nanoseconds longest_nap = std::chrono::microseconds(200);
};

/// Blocks the host until done() holds, by polling.
///
/// Returns   false if the deadline passed first; done() was asked once more after that.
/// Errors    whatever done() throws.
template <class Done>
bool poll_until(const Done& done, Deadline deadline, PollPace pace = {}) {
  std::chrono::nanoseconds nap = pace.first_nap;
  for (int turn = 0;; ++turn) {
    const bool last = deadline.passed();
    if (done()) return true;
    if (last) return false;
    if (turn < pace.spins) continue;
    sleep_for(deadline.nap(nap));
    nap = std::min(nap * 2, pace.longest_nap);
  }
}

/// Blocks until `changed` is notified and ready() holds. Takes the place of Condition::wait_until, which sleeps until
/// the deadline in one go, and so cannot tell whether the process ran meanwhile.
///
/// Returns   ready(): false if the deadline passed first.
template <class Condition, class Lock, class Ready>
bool wait_until(Condition& changed, Lock& lock, Deadline deadline, const Ready& ready) {
  while (!ready()) {
    if (deadline.passed()) return false;
    changed.wait_for(lock, deadline.nap());
  }
  return true;
}

}  // namespace gradring
