// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace gradring {

/// The moment at which a wait gives up. Every wait in gradring takes one; there is no infinite wait.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline after(std::chrono::nanoseconds duration) { return Deadline(Clock::now() + duration); }

  bool passed() const { return Clock::now() >= moment_; }
  /// Time left, never negative.
  std::chrono::nanoseconds remaining() const {
    const auto left = moment_ - Clock::now();
    return left.count() > 0 ? left : std::chrono::nanoseconds(0);
  }

 private:
  explicit Deadline(Clock::time_point moment) : moment_(moment) {}
  Clock::time_point moment_;
};

}  // namespace gradring
