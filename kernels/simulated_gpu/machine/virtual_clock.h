// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace gradring::simulated_gpu {

/// What %clock and %globaltimer of a block's threads say: it goes on when it is read, and measures nothing. A loop that
/// reads it until a time has passed ends after some hundred rounds, because each read by one instruction in a row lets
/// twice as much time pass.
class VirtualClock {
 public:
  void clear() { *this = {}; }
  std::uint64_t read(std::size_t position) {
    step_ = position == last_position_ ? std::min(2 * step_, kMostStep) : kFirstStep;
    last_position_ = position;
    return now_ += step_;
  }
  void advance(std::uint64_t time) { now_ += time; }

 private:
  static constexpr std::uint64_t kFirstStep = 32;
  static constexpr std::uint64_t kMostStep = std::uint64_t{1} << 24;

  std::uint64_t now_ = 0;
  std::uint64_t step_ = kFirstStep;
  std::size_t last_position_ = ~std::size_t{0};
};

}  // namespace gradring::simulated_gpu
