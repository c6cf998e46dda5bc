// SPDX-License-Identifier: Apache-2.0
// Arithmetic of f16 and bf16 outside of tensor cores, against exact integers.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/values.h"

namespace gradring::simulated_gpu {
namespace {

using Wide = __int128;

bool is_finite(U16 bits) { return (bits & 0x7c00) != 0x7c00; }

/// A finite f16 in units of 2^-24, which is exact.
Wide units_of(U16 bits) {
  const int exponent = bits >> 10 & 0x1f;
  const Wide magnitude = exponent == 0 ? Wide{bits & 0x3ff} : Wide{(bits & 0x3ff) | 0x400} << (exponent - 1);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// The f16 nearest to a number of units of 2^(-24 - `shift`), ties to even; not of zero, whose sign it does not know.
U16 rounded(Wide value, int shift) {
  const U16 sign = value < 0 ? 0x8000 : 0;
  Wide magnitude = value < 0 ? -value : value;
  int quantum = shift;  // a result is a multiple of 2^quantum of these units: 11 bits, and at least 2^-24
  while (magnitude >> quantum >= 2048) ++quantum;
  Wide kept = magnitude >> quantum;
  const Wide rest = magnitude - (kept << quantum);
  const Wide half = quantum == 0 ? 0 : Wide{1} << (quantum - 1);
  if (quantum > 0 && (rest > half || (rest == half && (kept & 1) != 0))) ++kept;
  // Adding to the bits of the exponent carries as the value does.
  const Wide exponent = kept < 1024 ? 0 : quantum - shift;
  const Wide bits = (exponent << 10) + kept;
  return static_cast<U16>(sign | static_cast<U16>(bits > 0x7c00 ? Wide{0x7c00} : bits));
}

using Cases = std::vector<std::tuple<U16, U16, U16>>;

/// Finite numbers of all sizes, and pairs that nearly cancel.
Cases finite_cases() {
  std::mt19937 random(21);
  Cases cases;
  while (cases.size() < 1024) {
    const auto draw = [&] { return static_cast<U16>(random()); };
    U16 a = draw(), b = draw(), c = draw();
    if (cases.size() % 3 == 0) b = static_cast<U16>((a ^ 0x8000) + random() % 4);
    if (cases.size() % 5 == 0) c = static_cast<U16>(0x0001 + random() % 8);  // far below the product
    if (is_finite(a) && is_finite(b) && is_finite(c)) cases.emplace_back(a, b, c);
  }
  return cases;
}

TEST(HalfArithmetic, IsRoundedOnceToTheNearest) {
  const Cases cases = finite_cases();
  const auto check = [&](const std::string& instruction, auto exact, int shift) {
    const std::vector<U16> results = evaluate<U16, U16, U16, U16>(instruction, cases);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const auto [a, b, c] = cases[i];
      const Wide value = exact(units_of(a), units_of(b), units_of(c));
      const U16 expected = value == 0 ? static_cast<U16>(results[i] & 0x8000) : rounded(value, shift);
      ASSERT_EQ(results[i], expected) << instruction << std::hex << " " << a << " " << b << " " << c;
    }
  };
  check(
      "add.f16 %d, %a, %b;", [](Wide a, Wide b, Wide) { return a + b; }, 0);
  check(
      "sub.rn.f16 %d, %a, %b;", [](Wide a, Wide b, Wide) { return a - b; }, 0);
  check(
      "mul.f16 %d, %a, %b;", [](Wide a, Wide b, Wide) { return a * b; }, 24);
  check(
      "fma.rn.f16 %d, %a, %b, %c;", [](Wide a, Wide b, Wide c) { return a * b + (c << 24); }, 24);
}

TEST(HalfArithmetic, ComputesPairsHalfByHalf) {
  // 1.5 + 2 and -1 + 1; 1.5 * 2 and inf * 0.
  const std::vector<std::tuple<U32, U32>> cases = {{0x3e00bc00, 0x40003c00}, {0x3e007c00, 0x40000000}};
  EXPECT_EQ((evaluate<U32, U32, U32>("add.f16x2 %d, %a, %b;", cases)), (std::vector<U32>{0x43000000, 0x43007c00}));
  EXPECT_EQ((evaluate<U32, U32, U32>("mul.rn.f16x2 %d, %a, %b;", cases)), (std::vector<U32>{0x4200bc00, 0x42007fff}));
}

TEST(HalfArithmetic, RoundsBFloat16Once) {
  // 1.25 * (1 + 2/128) is 162.5 / 128, and 1.75 * (1 + 2/128) is 227.5 / 128: what is added decides, however small.
  const std::vector<std::tuple<U16, U16, U16>> cases = {{0x3fa0, 0x3f82, 0},      {0x3fa0, 0x3f82, 0x2180},
                                                        {0x3fa0, 0x3f82, 0xa180}, {0x3fe0, 0x3f82, 0},
                                                        {0x3fe0, 0x3f82, 0x2180}, {0x3fe0, 0x3f82, 0xa180}};
  EXPECT_EQ((evaluate<U16, U16, U16, U16>("fma.rn.bf16 %d, %a, %b, %c;", cases)),
            (std::vector<U16>{0x3fa2, 0x3fa3, 0x3fa2, 0x3fe4, 0x3fe4, 0x3fe3}));
  // 1 + 2^-8 is a tie; the largest number twice; 2^-133, the least one, halved.
  const std::vector<std::tuple<U16, U16>> sums = {{0x3f80, 0x3b80}, {0x7f7f, 0x7f7f}};
  EXPECT_EQ((evaluate<U16, U16, U16>("add.bf16 %d, %a, %b;", sums)), (std::vector<U16>{0x3f80, 0x7f80}));
  EXPECT_EQ((evaluate<U16, U16, U16>("mul.bf16 %d, %a, %b;", {{0x0001, 0x3f00}, {0x0003, 0x3f00}})),
            (std::vector<U16>{0x0000, 0x0002}));
}

TEST(HalfArithmetic, HasModifiers) {
  const std::vector<std::tuple<U16, U16>> cases = {
      {0x3c00, 0x3c00}, {0xbc00, 0x0000}, {0x7e00, 0x3c00}, {0x0001, 0x0001}};
  EXPECT_EQ((evaluate<U16, U16, U16>("add.sat.f16 %d, %a, %b;", cases)),
            (std::vector<U16>{0x3c00, 0x0000, 0x0000, 0x0002}));
  EXPECT_EQ((evaluate<U16, U16, U16>("add.ftz.f16 %d, %a, %b;", cases)),
            (std::vector<U16>{0x4000, 0xbc00, 0x7fff, 0x0000}));
  EXPECT_EQ((evaluate<U16, U16, U16, U16>("fma.rn.relu.f16 %d, %a, %b, %c;",
                                          {{0x3c00, 0xbc00, 0x0000}, {0x3c00, 0x3c00, 0x7e00}})),
            (std::vector<U16>{0x0000, 0x7fff}));
}

TEST(HalfArithmetic, TakesExtremaAndSigns) {
  const std::vector<std::tuple<U16, U16>> cases = {
      {0x8000, 0x0000}, {0x7e01, 0x3c00}, {0xc000, 0x3c00}, {0x7e01, 0xfe00}};
  EXPECT_EQ((evaluate<U16, U16, U16>("min.f16 %d, %a, %b;", cases)),
            (std::vector<U16>{0x8000, 0x3c00, 0xc000, 0x7fff}));
  EXPECT_EQ((evaluate<U16, U16, U16>("max.f16 %d, %a, %b;", cases)),
            (std::vector<U16>{0x0000, 0x3c00, 0x3c00, 0x7fff}));
  EXPECT_EQ((evaluate<U16, U16, U16>("max.NaN.f16 %d, %a, %b;", cases))[1], 0x7fff);
  EXPECT_EQ((evaluate<U16, U16, U16>("max.xorsign.abs.f16 %d, %a, %b;", cases))[2], 0xc000);
  EXPECT_EQ((evaluate<U16, U16>("neg.bf16 %d, %a;", {{0x3f80}, {0x8000}})), (std::vector<U16>{0xbf80, 0x0000}));
  EXPECT_EQ((evaluate<U32, U32>("abs.bf16x2 %d, %a;", {{0xbf808000}})), (std::vector<U32>{0x3f800000}));
}

TEST(HalfArithmetic, Compares) {
  const auto holds = [](const std::string& comparison) {
    return evaluate<U32, U16, U16>("setp." + comparison + " %q1, %a, %b; selp.u32 %d, 1, 0, %q1;",
                                   {{0x3c00, 0x4000}, {0x8000, 0x0000}, {0x7e00, 0x3c00}});
  };
  EXPECT_EQ(holds("lt.f16"), (std::vector<U32>{1, 0, 0}));
  EXPECT_EQ(holds("geu.f16"), (std::vector<U32>{0, 1, 1}));
  EXPECT_EQ(holds("ne.f16"), (std::vector<U32>{1, 0, 0}));
  EXPECT_EQ(holds("nan.f16"), (std::vector<U32>{0, 0, 1}));
  const auto pair = evaluate<U32, U32, U32>(
      "setp.gt.f16x2 %q1|%q2, %a, %b; selp.u32 %r1, 1, 0, %q1; selp.u32 %r2, 2, 0, %q2; or.b32 %d, %r1, %r2;",
      {{0x40003c00, 0x3c004000}, {0x3c004000, 0x40003c00}});
  EXPECT_EQ(pair, (std::vector<U32>{2, 1}));
}

}  // namespace
}  // namespace gradring::simulated_gpu
