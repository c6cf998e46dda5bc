// SPDX-License-Identifier: Apache-2.0
// cvt of every floating-point type. The judge of roundings is a search among all values of the type, which are those
// that its definition lists: IEEE 754 for f16, OFP8 (Open Compute Project, 2023) for e4m3 and e5m2.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/values.h"

namespace gradring::simulated_gpu {
namespace {

/// The value of bits with `mantissa` bits behind the exponent; NaN and infinity as in IEEE 754, or as e4m3 has them.
double value_of(U32 bits, int width, int mantissa, int bias, bool is_e4m3) {
  const int exponent = static_cast<int>(bits >> mantissa & ((1u << (width - 1 - mantissa)) - 1));
  const int most = (1 << (width - 1 - mantissa)) - 1;
  const U32 fraction = bits & ((1u << mantissa) - 1);
  const double sign = (bits >> (width - 1) & 1) != 0 ? -1 : 1;
  if (is_e4m3 && exponent == most && fraction == 7) return kNan;
  if (!is_e4m3 && exponent == most) return fraction != 0 ? double{kNan} : sign * double{kInfinity};
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa);
  return sign * std::ldexp((1u << mantissa) + fraction, exponent - bias - mantissa);
}

double f16_value(U32 bits) { return value_of(bits, 16, 10, 15, false); }
double bf16_value(U32 bits) { return value_of(bits, 16, 7, 127, false); }
double e4m3_value(U32 bits) { return value_of(bits, 8, 3, 7, true); }
double e5m2_value(U32 bits) { return value_of(bits, 8, 2, 15, false); }

/// The codes of positive numbers, which are in the order of their values.
struct Codes {
  double (*value)(U32);
  U32 largest;
};

/// The code of |x| and its neighbour above, by bisection.
U32 code_below(const Codes& codes, double magnitude) {
  U32 low = 0, high = codes.largest;
  while (low < high) {
    const U32 middle = (low + high + 1) / 2;
    if (codes.value(middle) <= magnitude)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/// To the nearest, ties to an even code; too large: the largest one.
U32 nearest_finite(const Codes& codes, double x, U32 sign_bit) {
  const double magnitude = std::fabs(x);
  const U32 sign = std::signbit(x) ? sign_bit : 0;
  const U32 below = code_below(codes, magnitude);
  if (below == codes.largest) return sign | below;
  const double down = magnitude - codes.value(below), up = codes.value(below + 1) - magnitude;
  return sign | (down < up || (down == up && below % 2 == 0) ? below : below + 1);
}

std::vector<float> numbers() {
  std::mt19937 random(7);
  std::vector<float> made = {0,     -0.0f, 1,     -1,    448,  449,   464,    465,
                             57344, 61440, 65504, 65520, 1e9f, -1e9f, kLeast, 1e-7f};
  for (int i = 0; i < 400; ++i) {
    const double exponent = std::uniform_real_distribution<double>(-27, 18)(random);
    made.push_back(static_cast<float>(std::exp2(exponent) * (random() % 2 != 0 ? 1 : -1)));
  }
  for (U32 code = 0; code < 126; ++code) {  // ties
    made.push_back(static_cast<float>((e4m3_value(code) + e4m3_value(code + 1)) / 2));
    made.push_back(static_cast<float>((f16_value(250 * code) + f16_value(250 * code + 1)) / 2));
  }
  return made;
}

std::vector<std::tuple<float, float>> pairs(const std::vector<float>& values) {
  std::vector<std::tuple<float, float>> made;
  for (std::size_t i = 0; i < values.size(); ++i) made.emplace_back(values[i], values[(i + 1) % values.size()]);
  return made;
}

TEST(FormatConversion, F8IsTheNearestCode) {
  for (const auto& [name, codes] :
       {std::pair{"e4m3x2", Codes{e4m3_value, 0x7E}}, {"e5m2x2", Codes{e5m2_value, 0x7B}}}) {
    const auto cases = pairs(numbers());
    const auto found =
        evaluate<U32>(std::string("cvt.rn.satfinite.") + name + ".f32 %rs1, %a, %b; cvt.u32.u16 %d, %rs1;", cases);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(found[i] >> 8, nearest_finite(codes, std::get<0>(cases[i]), 0x80)) << name << std::get<0>(cases[i]);
      EXPECT_EQ(found[i] & 0xff, nearest_finite(codes, std::get<1>(cases[i]), 0x80)) << name << std::get<1>(cases[i]);
    }
  }
}

TEST(FormatConversion, F8OfNanAndInfinity) {
  const std::vector<std::tuple<float, float>> cases = {{kNan, kInfinity}};
  EXPECT_EQ(evaluate<U32>("cvt.rn.satfinite.e4m3x2.f32 %rs1, %a, %b; cvt.u32.u16 %d, %rs1;", cases)[0], 0x7F7Eu);
  EXPECT_EQ(evaluate<U32>("cvt.rn.satfinite.e5m2x2.f32 %rs1, %a, %b; cvt.u32.u16 %d, %rs1;", cases)[0], 0x7F7Bu);
  EXPECT_EQ(evaluate<U32>("cvt.rn.satfinite.relu.e4m3x2.f32 %rs1, %a, %b; cvt.u32.u16 %d, %rs1;",
                          std::vector<std::tuple<float, float>>{{-1, 1}})[0],
            0x0038u);
}

TEST(FormatConversion, EachF8IsExactInF16) {
  std::vector<std::tuple<U16>> cases;
  for (U32 code = 0; code < 256; ++code) cases.emplace_back(static_cast<U16>(code << 8 | (255 - code)));
  for (const auto& [name, value] : {std::pair{"e4m3x2", &e4m3_value}, {"e5m2x2", &e5m2_value}}) {
    const auto found = evaluate<U32>(std::string("cvt.rn.f16x2.") + name + " %d, %a;", cases);
    for (U32 code = 0; code < 256; ++code) {
      const auto same = [&](U32 half, double expected) {
        const double got = f16_value(half);
        return std::isnan(expected) ? std::isnan(got) : got == expected && std::signbit(got) == std::signbit(expected);
      };
      EXPECT_TRUE(same(found[code] >> 16, value(code))) << name << code;
      EXPECT_TRUE(same(found[code] & 0xffff, value(255 - code))) << name << 255 - code;
    }
  }
}

TEST(FormatConversion, Tf32IsRoundedToTenBitsAwayFromZero) {
  std::vector<std::tuple<float>> cases;
  for (const float value : numbers()) cases.emplace_back(value);
  const auto found = evaluate<U32>("cvt.rna.tf32.f32 %d, %a;", cases);
  for (std::size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(found[i], (std::bit_cast<U32>(std::get<0>(cases[i])) + 0x1000) & ~U32{0x1FFF});
}

// All 2^16 halves, as they are and as whole numbers.
TEST(FormatConversion, EveryHalf) {
  std::vector<std::tuple<U16>> cases;
  for (U32 first = 0; first < 0x10000; first += 1024) {
    cases.clear();
    for (U32 i = 0; i < 1024; ++i) cases.emplace_back(static_cast<U16>(first + i));
    const auto wide = evaluate<double>("cvt.f64.f16 %d, %a;", cases);
    const auto whole = evaluate<U32>("cvt.rni.s32.f16 %d, %a;", cases);
    const auto brain = evaluate<U32>("cvt.rn.bf16.f32 %rs1, 0f3F800000; cvt.rzi.s32.bf16 %d, %a;", cases);
    for (U32 i = 0; i < 1024; ++i) {
      const double f16 = f16_value(first + i), bf16 = bf16_value(first + i);
      if (std::isnan(f16)) {
        EXPECT_TRUE(std::isnan(wide[i]));
        EXPECT_EQ(whole[i], 0u);
      } else {
        EXPECT_EQ(wide[i], f16);
        const double rounded = std::clamp(std::nearbyint(f16), -2147483648.0, 2147483647.0);
        EXPECT_EQ(whole[i], static_cast<U32>(static_cast<std::int32_t>(rounded))) << f16;
      }
      const double cut = std::isnan(bf16) ? 0 : std::clamp(std::trunc(bf16), -2147483648.0, 2147483647.0);
      EXPECT_EQ(brain[i], static_cast<U32>(static_cast<std::int32_t>(cut))) << bf16;
    }
  }
}

TEST(FormatConversion, DirectedRoundingsTakeTheNeighbour) {
  const Codes codes{f16_value, 0x7BFF};
  std::vector<std::tuple<float>> cases;
  for (const float value : numbers())
    if (std::fabs(value) < 65504) cases.emplace_back(value);
  const auto to_zero = evaluate<U16>("cvt.rz.f16.f32 %d, %a;", cases);
  const auto nearest = evaluate<U16>("cvt.rn.f16.f64 %d, %b;", [&] {
    std::vector<std::tuple<float, double>> wide;
    for (const auto& [value] : cases) wide.emplace_back(value, value);
    return wide;
  }());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const float value = std::get<0>(cases[i]);
    const U32 sign = std::signbit(value) ? 0x8000 : 0;
    EXPECT_EQ(to_zero[i], sign | code_below(codes, std::fabs(value))) << value;
    EXPECT_EQ(nearest[i], nearest_finite(codes, value, 0x8000)) << value;
  }
}

TEST(FormatConversion, SaturatesIntegers) {
  const std::vector<std::tuple<U32>> cases = {{300}, {0xFFFFFFFF}, {200}, {0x80000000}};
  EXPECT_EQ(evaluate<U32>("cvt.sat.u8.s32 %rs1, %a; cvt.u32.u16 %d, %rs1;", cases), (std::vector<U32>{255, 0, 200, 0}));
  EXPECT_EQ(evaluate<U32>("cvt.sat.s8.s32 %rs1, %a; cvt.s32.s16 %d, %rs1;", cases),
            (std::vector<U32>{127, 0xFFFFFFFF, 127, 0xFFFFFF80}));
  EXPECT_EQ(evaluate<U32>("cvt.pack.sat.u8.s32.b32 %d, %a, 7, 0x0102;", cases),
            (std::vector<U32>{0x0102FF07, 0x01020007, 0x0102C807, 0x01020007}));
}

TEST(FormatConversion, IntegersToHalves) {
  const std::vector<std::tuple<U32>> cases = {{2049}, {0xFFFFFFFF}, {65520}, {257}};
  EXPECT_EQ(evaluate<U16>("cvt.rn.f16.s32 %d, %a;", cases), (std::vector<U16>{0x6800, 0xBC00, 0x7C00, 0x5C04}));
  EXPECT_EQ(evaluate<U16>("cvt.rn.bf16.s32 %d, %a;", cases), (std::vector<U16>{0x4500, 0xBF80, 0x4780, 0x4380}));
}

}  // namespace
}  // namespace gradring::simulated_gpu
