// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace gradring::simulated_gpu {
namespace {

/// A 16-bit format by its definition: `fraction` bits of it, exponents with a bias, subnormals.
struct Format {
  Half type;
  int fraction_bits;
  int exponent_bits;

  /// NaN for NaN.
  double value_of(unsigned bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    const int fraction = static_cast<int>(bits) & ((1 << fraction_bits) - 1);
    const double sign = bits >> 15 != 0 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) {
      return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
    }
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
    return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
  }
  unsigned infinity() const { return ((1U << exponent_bits) - 1) << fraction_bits; }
};
constexpr Format kFormats[] = {{Half::f16, 10, 5}, {Half::bf16, 7, 8}};

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST(SimulatedHalf, WidensEveryValueExactly) {
  for (const Format& format : kFormats) {
    for (unsigned bits = 0; bits <= 0xFFFF; ++bits) {
      const float value = to_f32(format.type, static_cast<std::uint16_t>(bits));
      const double expected = format.value_of(bits);
      ASSERT_EQ(std::isnan(value), std::isnan(expected)) << bits;
      if (std::isnan(expected)) continue;
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
    }
  }
}

// Between any two neighbours: the nearer one, and of two equally near ones the one whose last bit is 0.
TEST(SimulatedHalf, RoundsToNearestEven) {
  for (const Format& format : kFormats) {
    for (unsigned low = 0; low < format.infinity(); ++low) {
      // What follows the greatest finite value would be the next power of two.
      const double next =
          low + 1 < format.infinity() ? format.value_of(low + 1) : std::exp2(1 << (format.exponent_bits - 1));
      const auto middle = static_cast<float>((format.value_of(low) + next) / 2);
      ASSERT_EQ(middle, (format.value_of(low) + next) / 2);
      for (const float sign : {1.F, -1.F}) {
        const unsigned bit = sign < 0 ? 0x8000 : 0;
        const auto below = std::nextafter(middle, 0.F);
        const auto above = std::nextafter(middle, std::numeric_limits<float>::infinity());
        ASSERT_EQ(to_half(format.type, sign * static_cast<float>(format.value_of(low))), bit | low);
        ASSERT_EQ(to_half(format.type, sign * below), bit | low) << below;
        ASSERT_EQ(to_half(format.type, sign * middle), bit | (low + low % 2)) << middle;
        ASSERT_EQ(to_half(format.type, sign * above), bit | (low + 1)) << above;
      }
    }
  }
}

TEST(SimulatedHalf, TreatsInfinityAndNan) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(f32_to_f16(kInfinity), 0x7C00);
  EXPECT_EQ(f32_to_f16(-kInfinity), 0xFC00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::max()), 0x7C00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(f32_to_bf16(kInfinity), 0x7F80);
  EXPECT_EQ(f32_to_bf16(-kInfinity), 0xFF80);
  EXPECT_EQ(f32_to_bf16(-std::numeric_limits<float>::max()), 0xFF80);
  for (const std::uint32_t nan : {0x7F800001U, 0x7FC00000U, 0x7FFFFFFFU, 0xFF800001U, 0xFFFFFFFFU}) {
    EXPECT_EQ(f32_to_f16(std::bit_cast<float>(nan)), 0x7FFF) << nan;
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(nan)), 0x7FFF) << nan;
  }
  EXPECT_EQ(bits_of(f16_to_f32(0x7C01)), 0x7FFFFFFF);
  EXPECT_EQ(bits_of(f16_to_f32(0xFE00)), 0x7FFFFFFF);
  EXPECT_EQ(bits_of(bf16_to_f32(0xFF81)), 0xFF810000);
}

TEST(SimulatedHalf, ConvertsArraysAsSingleValues) {
  for (const Format& format : kFormats) {
    std::vector<std::uint16_t> all(0x10000);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    std::vector<float> wide(all.size());
    to_f32(format.type, all.data(), wide.data(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(bits_of(wide[i]), bits_of(to_f32(format.type, all[i]))) << i;
    }
    std::vector<float> values(1 << 17);  // a sample of all bit patterns
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i * 32749));
    std::vector<std::uint16_t> narrow(values.size());
    to_half(format.type, values.data(), narrow.data(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(narrow[i], to_half(format.type, values[i])) << values[i];
  }
}

}  // namespace
}  // namespace gradring::simulated_gpu
