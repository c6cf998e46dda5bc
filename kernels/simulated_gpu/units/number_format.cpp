// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/number_format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace gradring::simulated_gpu {
namespace {

/// The stored mantissa is in the upper bits of a TF32.
unsigned unused_bits(const NumberFormat& format) { return format.bits == 32 && format.mantissa == 10 ? 13 : 0; }

/// std::ldexp, which takes long for an ExactNumber.
ExactNumber scaled(ExactNumber number, int exponent) {
  constexpr int kBias = 1023, kLeast = -1022;  // of a double
  if (exponent < kLeast || exponent > kBias) return std::ldexp(number, exponent);
  return number * std::bit_cast<double>(static_cast<std::uint64_t>(exponent + kBias) << 52);
}

}  // namespace

ExactNumber number_of(const NumberFormat& format, std::uint64_t bits) {
  const unsigned unused = unused_bits(format);
  const unsigned exponent_bits = format.bits - unused - format.mantissa - 1;
  bits >>= unused;
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << format.mantissa) - 1);
  const std::uint64_t most = (std::uint64_t{1} << exponent_bits) - 1;
  const std::uint64_t exponent = bits >> format.mantissa & most;
  const bool is_negative = (bits >> (format.mantissa + exponent_bits) & 1) != 0;
  ExactNumber value = 0;
  if (format.has_infinity && exponent == most)
    value =
        mantissa == 0 ? std::numeric_limits<ExactNumber>::infinity() : std::numeric_limits<ExactNumber>::quiet_NaN();
  else if (!format.has_infinity && exponent == most && mantissa == (std::uint64_t{1} << format.mantissa) - 1)
    value = std::numeric_limits<ExactNumber>::quiet_NaN();
  else if (exponent == 0)
    value = scaled(static_cast<ExactNumber>(mantissa), 1 - format.bias - static_cast<int>(format.mantissa));
  else
    value = scaled(static_cast<ExactNumber>(mantissa | std::uint64_t{1} << format.mantissa),
                   static_cast<int>(exponent) - format.bias - static_cast<int>(format.mantissa));
  return is_negative ? -value : value;
}

ExactNumber rounded_to_integer(ExactNumber number, RoundingMode mode) {
  const ExactNumber below = std::floor(number);
  const ExactNumber rest = number - below;
  if (rest == 0) return number;
  const ExactNumber above = below + 1;
  switch (mode) {
    case RoundingMode::down: return below;
    case RoundingMode::up: return above == 0 ? -ExactNumber{0} : above;
    case RoundingMode::to_zero: return std::trunc(number);
    case RoundingMode::nearest_away: return rest == 0.5L ? (number < 0 ? below : above) : rest < 0.5L ? below : above;
    case RoundingMode::nearest: break;
  }
  if (rest != 0.5L) return std::copysign(rest < 0.5L ? below : above, number);
  return std::copysign(std::fmod(below, 2.0L) == 0 ? below : above, number);
}

std::uint64_t bits_of(const NumberFormat& format, ExactNumber number, RoundingMode mode, bool saturates) {
  if (std::isnan(number)) return format.nan;
  const unsigned unused = unused_bits(format);
  const std::uint64_t sign = std::signbit(number) ? std::uint64_t{1} << (format.bits - 1) : 0;
  const bool is_negative = sign != 0;
  const ExactNumber largest = number_of(format, format.largest);
  const ExactNumber magnitude = std::fabs(number);
  if (magnitude == 0) return sign;
  const std::uint64_t infinity = format.largest + (std::uint64_t{1} << unused);  // the next one, where there is one
  const bool stays_finite = saturates || !format.has_infinity;
  if (std::isinf(number)) return sign | (stays_finite ? format.largest : infinity);
  // In units of the last place.
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
  const int unit = exponent - static_cast<int>(format.mantissa);
  const ExactNumber rounded = std::fabs(rounded_to_integer(scaled(number, -unit), mode));
  const ExactNumber value = scaled(rounded, unit);
  if (value > largest) {
    const bool goes_to_zero = mode == RoundingMode::to_zero || (mode == RoundingMode::down && !is_negative) ||
                              (mode == RoundingMode::up && is_negative);
    return sign | (stays_finite || goes_to_zero ? format.largest : infinity);
  }
  if (value == 0) return sign;
  const int top = std::ilogb(value);
  const int biased = top + format.bias;
  if (biased <= 0) return sign | static_cast<std::uint64_t>(rounded) << unused;  // subnormal
  const auto mantissa = static_cast<std::uint64_t>(scaled(value, static_cast<int>(format.mantissa) - top));
  return sign | ((static_cast<std::uint64_t>(biased) << format.mantissa) |
                 (mantissa & ((std::uint64_t{1} << format.mantissa) - 1)))
                    << unused;
}

}  // namespace gradring::simulated_gpu
