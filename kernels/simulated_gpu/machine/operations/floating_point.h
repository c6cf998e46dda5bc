// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace gradring::simulated_gpu {

/// A NaN as a GPU returns it in f32: payloads are not kept.
inline float canonical(float value) { return value == value ? value : std::bit_cast<float>(0x7fffffffu); }
inline double canonical(double value) { return value; }

/// A subnormal number becomes a zero of its sign (.ftz).
inline float flushed(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : value;
}

/// F with .ftz: of its operands and of its result.
template <class F>
struct Flush {
  template <class... T>
  float operator()(T... values) const {
    return flushed(F{}(flushed(values)...));
  }
};

/// Clamped to [0, 1]; NaN becomes 0 (.sat).
template <class T>
T saturated(T value) {
  return value > T{0} ? value < T{1} ? value : T{1} : T{0};
}

enum class Rounding : std::uint8_t { nearest_even, to_zero, down, up };  ///< .rn, .rz, .rm, .rp

/// An exact sum: `high` is the double next to it.
struct Sum {
  double high = 0, low = 0;
};

/// Knuth's TwoSum.
inline Sum sum_of(double a, double b) {
  const double high = a + b;
  const double part = high - a;
  return {high, (a - (high - part)) + (b - part)};
}

/// The float for an exact sum.
template <Rounding kRounding>
float round_sum(const Sum& sum) {
  const auto [high, low] = sum;
  float result = static_cast<float>(high);
  if (!std::isfinite(high)) return result;
  if (high == 0 && low == 0) return kRounding == Rounding::down && std::signbit(high) ? -0.0f : result;
  const bool is_above = result > high || (result == high && low < 0);  // than the exact sum
  const bool is_below = result < high || (result == high && low > 0);
  const bool is_negative = high < 0 || (high == 0 && low < 0);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (kRounding == Rounding::down || (kRounding == Rounding::to_zero && !is_negative)) {
    if (is_above) result = std::nextafter(result, -kInfinity);
  } else if (kRounding == Rounding::up || kRounding == Rounding::to_zero) {
    if (is_below) result = std::nextafter(result, kInfinity);
  }
  return result;
}

/// a + b, rounded as asked.
template <Rounding kRounding>
float add_rounded(double a, double b) {
  const Sum sum = sum_of(a, b);
  if (sum.high == 0 && (a != 0 || std::signbit(a) != std::signbit(b)))
    return kRounding == Rounding::down ? -0.0f : 0.0f;
  return round_sum<kRounding>(sum);
}

}  // namespace gradring::simulated_gpu
