// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/deadline.h"

#include <thread>

namespace gradring {
namespace {

/// Readings closer than this write nothing, so that threads that spin on deadlines do not contend for a cache line.
constexpr std::chrono::nanoseconds::rep kGrain = 1'000'000;

std::chrono::nanoseconds steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

std::atomic<RunningTime*> used_time = nullptr;

}  // namespace

RunningTime& RunningClock::time() noexcept {
  static RunningTime own(steady_now);
  RunningTime* const used = used_time.load(std::memory_order_acquire);
  return used != nullptr ? *used : own;
}

void RunningClock::use(RunningTime& time) noexcept { used_time.store(&time, std::memory_order_release); }

RunningClock::time_point RunningClock::now() noexcept { return time_point(time().now()); }

std::chrono::nanoseconds RunningTime::now() noexcept {
  constexpr std::chrono::nanoseconds kLongestGap = RunningClock::kLongestGap;
  for (;;) {
    const auto uncounted = uncounted_.load(std::memory_order_acquire);
    const auto time = source_().count();
    auto last = last_.load(std::memory_order_acquire);
    if (time - last <= kLongestGap.count()) {
      // Another thread may have found a gap since this one asked what is not counted.
      if (uncounted_.load(std::memory_order_relaxed) != uncounted) continue;
      while (time - last > kGrain && !last_.compare_exchange_weak(last, time, std::memory_order_relaxed)) {
      }
      return std::chrono::nanoseconds(time - uncounted);
    }
    const std::lock_guard lock(gap_);
    if (last_.load(std::memory_order_relaxed) != last) continue;
    // In this order: whoever reads the new last_ sees the new uncounted_, too.
    uncounted_.fetch_add(time - last - kLongestGap.count(), std::memory_order_release);
    last_.store(time, std::memory_order_release);
  }
}

void sleep_for(std::chrono::nanoseconds duration) { std::this_thread::sleep_for(duration); }

}  // namespace gradring
