// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace gradring::kernels::bench {

/// Seconds since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace gradring::kernels::bench
