// SPDX-License-Identifier: Apache-2.0
// setp, selp, cvt, mov against the definitions of the PTX ISA (version 9.0, chapter 9.7).
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/values.h"

namespace gradring::simulated_gpu {
namespace {

/// 1 where the comparison holds.
template <class T>
std::vector<U32> holds(const std::string& comparison, const std::vector<std::tuple<T, T>>& cases) {
  return evaluate<U32>("setp." + comparison + " %q1, %a, %b; selp.u32 %d, 1, 0, %q1;", cases);
}

TEST(Comparison, OfFloatsIsOrderedUnlessItEndsInU) {
  const std::vector<std::tuple<float, float>> cases = {{1, 2}, {2, 2}, {kNan, 2}, {-0.0f, 0.0f}};
  const auto of = [&](const char* name) { return holds(name + std::string(".f32"), cases); };
  using Results = std::vector<U32>;
  EXPECT_EQ(of("eq"), (Results{0, 1, 0, 1}));
  EXPECT_EQ(of("ne"), (Results{1, 0, 0, 0}));
  EXPECT_EQ(of("lt"), (Results{1, 0, 0, 0}));
  EXPECT_EQ(of("le"), (Results{1, 1, 0, 1}));
  EXPECT_EQ(of("gt"), (Results{0, 0, 0, 0}));
  EXPECT_EQ(of("ge"), (Results{0, 1, 0, 1}));
  EXPECT_EQ(of("equ"), (Results{0, 1, 1, 1}));
  EXPECT_EQ(of("neu"), (Results{1, 0, 1, 0}));
  EXPECT_EQ(of("ltu"), (Results{1, 0, 1, 0}));
  EXPECT_EQ(of("leu"), (Results{1, 1, 1, 1}));
  EXPECT_EQ(of("gtu"), (Results{0, 0, 1, 0}));
  EXPECT_EQ(of("geu"), (Results{0, 1, 1, 1}));
  EXPECT_EQ(of("num"), (Results{1, 1, 0, 1}));
  EXPECT_EQ(of("nan"), (Results{0, 0, 1, 0}));
}

TEST(Comparison, OfIntegersHonoursTheSign) {
  const std::vector<std::tuple<U32, U32>> cases = {{0xffffffff, 1}, {1, 1}};
  EXPECT_EQ(holds("lt.s32", cases), (std::vector<U32>{1, 0}));
  EXPECT_EQ(holds("lt.u32", cases), (std::vector<U32>{0, 0}));
  EXPECT_EQ(holds("hs.u32", cases), (std::vector<U32>{1, 1}));
  EXPECT_EQ(holds("ne.b32", cases), (std::vector<U32>{1, 0}));
  EXPECT_EQ(holds("gt.s16", std::vector<std::tuple<U16, U16>>{{0x8000, 0}}), std::vector<U32>{0});
  EXPECT_EQ(holds("gt.u64", std::vector<std::tuple<U64, U64>>{{~U64{0}, 0}}), std::vector<U32>{1});
}

TEST(Comparison, CombinesWithAPredicateAndGivesTheComplement) {
  const std::vector<std::tuple<U32, U32>> cases = {{1, 2}, {2, 1}, {5, 6}};
  const std::string text =
      "setp.gt.u32 %q1, %a, 1;"
      "setp.lt.and.u32 %q2|%q3, %a, %b, !%q1;"
      "selp.u32 %d, 1, 0, %q2; selp.u32 %r1, 2, 0, %q3; or.b32 %d, %d, %r1;";
  EXPECT_EQ(evaluate<U32>(text, cases), (std::vector<U32>{1, 0, 0}));
  EXPECT_EQ(
      evaluate<U32>("setp.gt.u32 %q1, %a, 4; setp.lt.or.u32 %q2|%q3, %a, %b, %q1; selp.u32 %d, 1, 0, %q2;", cases),
      (std::vector<U32>{1, 0, 1}));
}

TEST(Conversion, BetweenIntegersExtendsOrCuts) {
  const std::vector<std::tuple<U32>> cases = {{0x8180ff80}};
  EXPECT_EQ(evaluate<U64>("cvt.s64.s32 %d, %a;", cases).front(), 0xffffffff8180ff80u);
  EXPECT_EQ(evaluate<U64>("cvt.u64.u32 %d, %a;", cases).front(), 0x8180ff80u);
  EXPECT_EQ(evaluate<U32>("cvt.s32.s8 %d, %a;", cases).front(), 0xffffff80u);
  EXPECT_EQ(evaluate<U32>("cvt.u32.u8 %d, %a;", cases).front(), 0x80u);
  EXPECT_EQ(evaluate<U16>("cvt.u16.u32 %d, %a;", cases).front(), 0xff80u);
  EXPECT_EQ(evaluate<U16>("cvt.s16.s8 %d, %a;", cases).front(), 0xff80u);
  EXPECT_EQ(evaluate<U32>("cvt.u32.u64 %d, %a;", std::vector<std::tuple<U64>>{{0x123456789abcdef0}}).front(),
            0x9abcdef0u);
}

TEST(Conversion, ToHalfRoundsTiesToEven) {
  // Halfway between two halves, beyond the largest, at the least subnormal, NaN.
  const std::vector<std::tuple<float>> cases = {{1 + 0x1p-11f}, {1 + 0x3p-11f},    {65519}, {65520},
                                                {0x1p-25f},     {0x1.000002p-25f}, {kNan},  {-kInfinity}};
  EXPECT_EQ(evaluate<U16>("cvt.rn.f16.f32 %d, %a;", cases),
            (std::vector<U16>{0x3c00, 0x3c02, 0x7bff, 0x7c00, 0, 1, 0x7fff, 0xfc00}));
  EXPECT_EQ(evaluate<float>("cvt.f32.f16 %d, %a;", std::vector<std::tuple<U16>>{{0x3c01}, {0x0001}, {0xfc00}}),
            (std::vector<float>{1 + 0x1p-10f, 0x1p-24f, -kInfinity}));
}

TEST(Conversion, ToBFloat16RoundsTiesToEven) {
  const std::vector<std::tuple<float>> cases = {
      {1 + 0x1p-8f}, {1 + 0x3p-8f}, {std::numeric_limits<float>::max()}, {kNan}, {0x1p-149f}};
  EXPECT_EQ(evaluate<U16>("cvt.rn.bf16.f32 %d, %a;", cases), (std::vector<U16>{0x3f80, 0x3f82, 0x7f80, 0x7fff, 0}));
  EXPECT_EQ(evaluate<float>("cvt.f32.bf16 %d, %a;", std::vector<std::tuple<U16>>{{0x3f81}}),
            std::vector<float>{1 + 0x1p-7f});
  EXPECT_EQ(evaluate<U32>("cvt.rn.bf16x2.f32 %d, %a, %b;", std::vector<std::tuple<float, float>>{{1, 2}}),
            std::vector<U32>{0x3f804000});
}

TEST(Conversion, ToIntegersClampsAndRounds) {
  const std::vector<std::tuple<float>> cases = {{2.5f}, {3.5f}, {-2.5f}, {3e9f}, {-3e9f}, {kNan}, {-0.25f}};
  EXPECT_EQ(evaluate<U32>("cvt.rni.s32.f32 %d, %a;", cases),
            (std::vector<U32>{2, 4, static_cast<U32>(-2), 0x7fffffff, 0x80000000, 0, 0}));
  EXPECT_EQ(evaluate<U32>("cvt.rzi.u32.f32 %d, %a;", cases), (std::vector<U32>{2, 3, 0, 3000000000, 0, 0, 0}));
  EXPECT_EQ(evaluate<U32>("cvt.rmi.s32.f32 %d, %a;", cases).back(), ~U32{0});
  EXPECT_EQ(evaluate<U64>("cvt.rzi.s64.f32 %d, %a;", cases)[5], U64{1} << 63);
  EXPECT_EQ(evaluate<U64>("cvt.rzi.u64.f64 %d, %a;", std::vector<std::tuple<double>>{{1e30}, {-1}, {0x1p63}}),
            (std::vector<U64>{~U64{0}, 0, U64{1} << 63}));
}

TEST(Conversion, FromIntegersRoundsToNearest) {
  EXPECT_EQ(
      evaluate<float>("cvt.rn.f32.s32 %d, %a;", std::vector<std::tuple<U32>>{{0x01000001}, {0x01000003}, {0xffffffff}}),
      (std::vector<float>{0x1p24f, 0x1.000004p24f, -1}));
  EXPECT_EQ(evaluate<float>("cvt.rn.f32.u16 %d, %a;", std::vector<std::tuple<U16>>{{0xffff}}),
            std::vector<float>{65535});
  EXPECT_EQ(evaluate<double>("cvt.rn.f64.s64 %d, %a;", std::vector<std::tuple<U64>>{{~U64{0}}}),
            std::vector<double>{-1});
}

TEST(Conversion, WithinAFloatType) {
  const std::vector<std::tuple<float>> cases = {{2.5f}, {-0.5f}, {kNan}};
  EXPECT_EQ(evaluate<float>("cvt.rni.f32.f32 %d, %a;", std::vector<std::tuple<float>>{{2.5f}, {-0.5f}}),
            (std::vector<float>{2, 0}));
  EXPECT_EQ(evaluate<float>("cvt.sat.f32.f32 %d, %a;", cases), (std::vector<float>{1, 0, 0}));
  EXPECT_EQ(evaluate<float>("cvt.rn.f32.f64 %d, %a;", std::vector<std::tuple<double>>{{1 + 0x1p-24}, {1 + 0x1.8p-23}}),
            (std::vector<float>{1, 1 + 0x1p-22f}));
}

TEST(Moves, PackAndUnpackVectors) {
  EXPECT_EQ(evaluate<U64>("mov.b64 %d, {%a, %b};", std::vector<std::tuple<U32, U32>>{{1, 2}}).front(), 0x200000001u);
  EXPECT_EQ(
      evaluate<U32>("mov.b64 {%d, %r1}, %a; sub.u32 %d, %r1, %d;", std::vector<std::tuple<U64>>{{0x500000002}}).front(),
      3u);
  EXPECT_EQ(evaluate<U32>("mov.b32 %d, {%a, %b};", std::vector<std::tuple<U16, U16>>{{0x1111, 0x2222}}).front(),
            0x22221111u);
}

TEST(Moves, SelectByPredicate) {
  const std::vector<std::tuple<double, double>> cases = {{1, 2}, {4, 3}};
  EXPECT_EQ(evaluate<double>("setp.lt.f64 %q1, %a, %b; selp.f64 %d, %a, %b, %q1;", cases), (std::vector<double>{1, 3}));
}

}  // namespace
}  // namespace gradring::simulated_gpu
