// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/simt/simt.h"

namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Divides by a number that is known at launch: a multiplication, an addition and a shift, where a GPU, which has no
/// instruction for it, takes some twenty.
///
/// Limits      1 <= divisor < 2^31, 0 <= dividend < 2^31.
/// Numerics    exact.
/// Source      Granlund and Montgomery, Division by Invariant Integers using Multiplication, 1994.
class Divisor {
 public:
  struct Result {
    int quotient, remainder;
  };

  /// A divisor of 0, as of an empty array, counts as 1: it is never used.
  explicit constexpr Divisor(int divisor) : divisor_(divisor < 1 ? 1 : divisor) {
    while ((std::int64_t{1} << shift_) < divisor_) ++shift_;
    const std::uint64_t excess = (std::uint64_t{1} << shift_) - static_cast<std::uint64_t>(divisor_);
    multiplier_ = static_cast<std::uint32_t>((excess << 32) / static_cast<std::uint64_t>(divisor_) + 1);
  }

  constexpr int value() const { return divisor_; }

  __device__ Result divide(int dividend) const {
    const auto n = static_cast<std::uint32_t>(dividend);
    const auto high = static_cast<std::uint32_t>(std::uint64_t{n} * multiplier_ >> 32);
    const int quotient = static_cast<int>((high + n) >> shift_);
    return {quotient, dividend - quotient * divisor_};
  }

 private:
  int divisor_;
  int shift_ = 0;
  std::uint32_t multiplier_ = 0;
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
