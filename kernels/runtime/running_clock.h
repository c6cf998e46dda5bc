// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
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

}  // namespace gradring
