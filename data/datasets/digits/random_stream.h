// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "kernels/runtime/philox.h"

namespace gradring::data {

/// The random numbers of one sample: a pure function of (seed, index), and of how many were drawn before.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t index) : seed_(seed), index_(index) {}

  std::uint32_t word() {
    if (used_ == 4) {
      words_ = kernels::philox(seed_, block_++, index_);
      used_ = 0;
    }
    return words_[used_++];
  }

  /// Uniform in low .. high, both included.
  int between(int low, int high) {
    const auto count = static_cast<std::uint64_t>(high - low + 1);
    return low + static_cast<int>(count * word() >> 32);
  }

 private:
  std::uint64_t seed_, index_, block_ = 0;
  std::array<std::uint32_t, 4> words_{};
  unsigned used_ = 4;
};

}  // namespace gradring::data
