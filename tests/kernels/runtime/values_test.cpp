// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <cmath>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/runtime/dtype.h"
#include "kernels/runtime/philox.h"
#include "kernels/runtime/shape.h"

namespace gradring::kernels {
namespace {

constexpr DType kAll[] = {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};

TEST(DType, NamesAndParsesEachType) {
  for (DType dtype : kAll) EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
  for (const char* wrong : {"", "f3", "float", "F32", "f32 "}) EXPECT_EQ(parse_dtype(wrong), std::nullopt) << wrong;
}

template <class T>
void expect_size(std::size_t bytes) {
  EXPECT_EQ(size_of(dtype_of<T>), bytes);
  EXPECT_EQ(sizeof(T), bytes);
}

TEST(DType, HasTheSizeOfItsHostType) {
  expect_size<float>(4);
  expect_size<Half>(2);
  expect_size<BFloat16>(2);
  expect_size<std::int32_t>(4);
  expect_size<std::int64_t>(8);
  expect_size<std::uint8_t>(1);
}

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

TYPED_TEST(SixteenBits, RoundTripsEveryPattern) {
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

TYPED_TEST(SixteenBits, RoundsToNearestWithTiesToEven) {
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

TYPED_TEST(SixteenBits, OverflowsHalfAStepPastTheLargest) {
  const auto infinity = TypeParam::narrow(std::numeric_limits<float>::infinity()).bits;
  const auto largest = static_cast<std::uint16_t>(infinity - 1);
  const double step = meaning<TypeParam>(largest) - meaning<TypeParam>(static_cast<std::uint16_t>(largest - 1));
  const auto first_too_large = static_cast<float>(meaning<TypeParam>(largest) + step / 2);
  EXPECT_EQ(TypeParam::narrow(first_too_large).bits, infinity);
  EXPECT_EQ(TypeParam::narrow(std::nextafter(first_too_large, 0.0f)).bits, largest);
  EXPECT_EQ(TypeParam::narrow(-first_too_large).bits, infinity | 0x8000);
}

using Words = std::array<std::uint32_t, 4>;

// The three vectors for philox4x32-10 in Random123's kat_vectors. Its words stand lowest first.
TEST(Philox, MatchesKnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformStaysBelowOne) {
  EXPECT_EQ(uniform_from(0), 0.0f);
  EXPECT_EQ(uniform_from(0x80000000u), 0.5f);
  EXPECT_LT(uniform_from(0xffffffffu), 1.0f);
}

TEST(Shape, MultipliesItsExtents) {
  EXPECT_EQ(Shape({2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape({5, 0, 4}).elements(), 0);
  EXPECT_EQ(Shape({}).elements(), 1);
}

TEST(Shape, RejectsImpossibleExtents) {
  EXPECT_THROW(Shape({2, -1}), InvalidArgument);
  EXPECT_THROW(Shape({1, 2, 3, 4, 5, 6, 7}), InvalidArgument);
  EXPECT_THROW(Shape({1ll << 40, 1ll << 40}), InvalidArgument);
  EXPECT_THROW(Shape({3})[1], InvalidArgument);
}

TEST(Shape, ReplacesOnlyTheBatch) { EXPECT_EQ(Shape({64, 28, 28, 1}).with_batch(7), Shape({7, 28, 28, 1})); }

TEST(Shape, PrintsAsAList) { EXPECT_EQ(Shape({64, 28, 1}).to_string(), "[64, 28, 1]"); }

}  // namespace
}  // namespace gradring::kernels
