// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "kernels/runtime/running_clock.h"

namespace gradring {

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
