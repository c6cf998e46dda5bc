// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "kernels/base/deadline.h"

namespace gradring::tests {

/// Makes the process's RunningClock stand still, except where the test lets time pass; one at a time. Threads that read
/// the clock must end before it.
class TestClock {
 public:
  TestClock();
  ~TestClock();
  TestClock(const TestClock&) = delete;
  TestClock& operator=(const TestClock&) = delete;

  /// Lets time pass in which the process runs.
  static void pass(std::chrono::nanoseconds time);
  /// Lets time pass in which the process is stopped.
  static void stop_for(std::chrono::nanoseconds time);
  /// Blocks until other threads have read the clock some more times, so that those that wait have seen what time it is.
  ///
  /// Errors    std::runtime_error if nobody reads it.
  static void wait_for_readings(int count);

 private:
  RunningTime& before_;
  RunningTime time_;
};

}  // namespace gradring::tests
