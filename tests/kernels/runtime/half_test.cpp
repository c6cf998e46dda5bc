// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gradring::kernels {
namespace {

/// How a 16-bit format is laid out, and its conversions under one name.
struct HalfFormat {
  using Type = Half;
  static constexpr int kMantissaBits = 10, kBias = 15;
  static constexpr Type narrow(float value) { return to_half(value); }
};
struct BrainFormat {
  using Type = BFloat16;
  static constexpr int kMantissaBits = 7, kBias = 127;
  static constexpr Type narrow(float value) { return to_bfloat16(value); }
};

/// The value that the standard gives to a pattern, computed the slow way.
template <class Format>
double meaning(std::uint16_t bits) {
  const int exponent_bits = 15 - Format::kMantissaBits;
  const int exponent = bits >> Format::kMantissaBits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << Format::kMantissaBits) - 1);
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  const int hidden = exponent == 0 ? 0 : 1 << Format::kMantissaBits;
  return sign * std::ldexp(hidden + mantissa, std::max(exponent, 1) - Format::kBias - Format::kMantissaBits);
}

template <class Format>
class SixteenBits : public testing::Test {};
using Formats = testing::Types<HalfFormat, BrainFormat>;
TYPED_TEST_SUITE(SixteenBits, Formats);

TYPED_TEST(SixteenBits, EveryPatternWidensToItsMeaningAndBack) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const typename TypeParam::Type narrow{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(narrow);
    const double expected = meaning<TypeParam>(narrow.bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide)) << bits;
      ASSERT_TRUE(std::isnan(to_float(TypeParam::narrow(wide)))) << bits;
    } else {
      ASSERT_EQ(wide, expected) << bits;
      ASSERT_EQ(std::signbit(wide), std::signbit(expected)) << bits;
      ASSERT_EQ(TypeParam::narrow(wide).bits, bits);
    }
  }
}

TYPED_TEST(SixteenBits, BetweenNeighboursTheNearestWinsAndTiesGoToEven) {
  const auto infinity = TypeParam::narrow(std::numeric_limits<float>::infinity()).bits;
  for (std::uint16_t low = 0; low + 1 < infinity; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const auto middle = static_cast<float>((meaning<TypeParam>(low) + meaning<TypeParam>(high)) / 2);
    const std::uint16_t even = low % 2 == 0 ? low : high;
    ASSERT_EQ(TypeParam::narrow(middle).bits, even) << low;
    ASSERT_EQ(TypeParam::narrow(-middle).bits, even | 0x8000) << low;
    ASSERT_EQ(TypeParam::narrow(std::nextafter(middle, 0.0f)).bits, low) << low;
    ASSERT_EQ(TypeParam::narrow(std::nextafter(middle, std::numeric_limits<float>::infinity())).bits, high) << low;
  }
}

TYPED_TEST(SixteenBits, OverflowsToInfinityHalfAStepPastTheLargest) {
  const auto infinity = TypeParam::narrow(std::numeric_limits<float>::infinity()).bits;
  const auto largest = static_cast<std::uint16_t>(infinity - 1);
  const double step = meaning<TypeParam>(largest) - meaning<TypeParam>(static_cast<std::uint16_t>(largest - 1));
  const auto first_too_large = static_cast<float>(meaning<TypeParam>(largest) + step / 2);
  EXPECT_EQ(TypeParam::narrow(first_too_large).bits, infinity);
  EXPECT_EQ(TypeParam::narrow(std::nextafter(first_too_large, 0.0f)).bits, largest);
  EXPECT_EQ(TypeParam::narrow(-first_too_large).bits, infinity | 0x8000);
}

}  // namespace
}  // namespace gradring::kernels
