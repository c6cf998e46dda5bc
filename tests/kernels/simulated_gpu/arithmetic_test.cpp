// SPDX-License-Identifier: Apache-2.0
// Arithmetic against the definitions of the PTX ISA (version 9.0, chapter 9.7).
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/values.h"

namespace gradring::simulated_gpu {
namespace {

std::vector<U32> bits(const std::vector<float>& values) {
  std::vector<U32> result;
  for (float value : values) result.push_back(std::bit_cast<U32>(value));
  return result;
}

TEST(IntegerArithmetic, WrapsAround) {
  const std::vector<std::tuple<U32, U32>> cases = {{0xffffffff, 1}, {0, 1}, {0x80000000, 0x80000000}, {7, 5}};
  EXPECT_EQ(evaluate<U32>("add.s32 %d, %a, %b;", cases), (std::vector<U32>{0, 1, 0, 12}));
  EXPECT_EQ(evaluate<U32>("sub.u32 %d, %a, %b;", cases), (std::vector<U32>{0xfffffffe, 0xffffffff, 0, 2}));
  EXPECT_EQ(evaluate<U32>("mul.lo.s32 %d, %a, %b;", cases), (std::vector<U32>{0xffffffff, 0, 0, 35}));
  const std::vector<std::tuple<U16, U16>> halves = {{0xffff, 0xffff}, {0x8000, 2}, {300, 300}};
  EXPECT_EQ(evaluate<U16>("mul.lo.s16 %d, %a, %b;", halves), (std::vector<U16>{1, 0, static_cast<U16>(90000)}));
  EXPECT_EQ(evaluate<U32>("mul.wide.u16 %d, %a, %b;", halves), (std::vector<U32>{0xfffe0001, 0x10000, 90000}));
  EXPECT_EQ(evaluate<U32>("mul.wide.s16 %d, %a, %b;", halves), (std::vector<U32>{1, 0xffff0000, 90000}));
}

TEST(IntegerArithmetic, MultipliesHighAndWide) {
  const std::vector<std::tuple<U32, U32>> cases = {{0xffffffff, 0xffffffff}, {0x80000000, 2}, {3, 5}};
  EXPECT_EQ(evaluate<U32>("mul.hi.u32 %d, %a, %b;", cases), (std::vector<U32>{0xfffffffe, 1, 0}));
  EXPECT_EQ(evaluate<U32>("mul.hi.s32 %d, %a, %b;", cases), (std::vector<U32>{0, 0xffffffff, 0}));
  EXPECT_EQ(evaluate<U64>("mul.wide.s32 %d, %a, %b;", cases), (std::vector<U64>{1, 0xffffffff00000000, 15}));
  EXPECT_EQ(evaluate<U64>("mad.wide.u32 %d, %a, %b, 1;", cases),
            (std::vector<U64>{0xfffffffe00000002, 0x100000001, 16}));
  const std::vector<std::tuple<U64, U64>> wide = {{~U64{0}, ~U64{0}}, {U64{1} << 63, 2}};
  EXPECT_EQ(evaluate<U64>("mul.hi.u64 %d, %a, %b;", wide), (std::vector<U64>{~U64{0} - 1, 1}));
  EXPECT_EQ(evaluate<U64>("mul.hi.s64 %d, %a, %b;", wide), (std::vector<U64>{0, ~U64{0}}));
  EXPECT_EQ(evaluate<U32>("mad.lo.s32 %d, %a, %b, %a;", cases), (std::vector<U32>{0, 0x80000000, 18}));
  EXPECT_EQ(evaluate<U32>("mad.hi.u32 %d, %a, %b, 10;", cases), (std::vector<U32>{8, 11, 10}));
}

TEST(IntegerArithmetic, DividesTowardsZero) {
  const std::vector<std::tuple<U32, U32>> cases = {
      {static_cast<U32>(-7), 2}, {7, static_cast<U32>(-2)}, {0x80000000, 0xffffffff}};
  EXPECT_EQ(evaluate<U32>("div.s32 %d, %a, %b;", cases),
            (std::vector<U32>{static_cast<U32>(-3), static_cast<U32>(-3), 0x80000000}));
  EXPECT_EQ(evaluate<U32>("rem.s32 %d, %a, %b;", cases), (std::vector<U32>{static_cast<U32>(-1), 1, 0}));
  EXPECT_EQ(evaluate<U32>("div.u32 %d, %a, %b;", cases), (std::vector<U32>{0x7ffffffc, 0, 0}));
  EXPECT_EQ(evaluate<U32>("div.s32 %d, %a, 0;", cases).size(), 3u);  // unspecified, but no trap of the host
}

TEST(IntegerArithmetic, HonoursSignsInExtrema) {
  const std::vector<std::tuple<U32, U32>> cases = {{0xffffffff, 1}};
  EXPECT_EQ(evaluate<U32>("min.s32 %d, %a, %b;", cases).front(), 0xffffffffu);
  EXPECT_EQ(evaluate<U32>("min.u32 %d, %a, %b;", cases).front(), 1u);
  EXPECT_EQ(evaluate<U32>("max.s32 %d, %a, %b;", cases).front(), 1u);
  EXPECT_EQ(evaluate<U32>("max.u32 %d, %a, %b;", cases).front(), 0xffffffffu);
  EXPECT_EQ(evaluate<U32>("neg.s32 %d, %a;", cases).front(), 1u);
  EXPECT_EQ(evaluate<U32>("abs.s32 %d, %a;", std::vector<std::tuple<U32>>{{0x80000000}, {static_cast<U32>(-5)}}),
            (std::vector<U32>{0x80000000, 5}));
}

TEST(Bits, ClampsShiftsToTheWidth) {
  const std::vector<std::tuple<U32, U32>> cases = {
      {0x80000001, 0}, {0x80000001, 31}, {0x80000001, 32}, {0x80000001, 0xffffffff}};
  EXPECT_EQ(evaluate<U32>("shl.b32 %d, %a, %b;", cases), (std::vector<U32>{0x80000001, 0x80000000, 0, 0}));
  EXPECT_EQ(evaluate<U32>("shr.u32 %d, %a, %b;", cases), (std::vector<U32>{0x80000001, 1, 0, 0}));
  EXPECT_EQ(evaluate<U32>("shr.s32 %d, %a, %b;", cases), (std::vector<U32>{0x80000001, ~U32{0}, ~U32{0}, ~U32{0}}));
  const std::vector<std::tuple<U16, U32>> halves = {{0x8001, 1}, {0x8001, 16}};
  EXPECT_EQ(evaluate<U16>("shl.b16 %d, %a, %b;", halves), (std::vector<U16>{2, 0}));
  EXPECT_EQ(evaluate<U16>("shr.s16 %d, %a, %b;", halves), (std::vector<U16>{0xc000, 0xffff}));
  const std::vector<std::tuple<U64, U32>> wide = {{U64{1} << 63, 63}, {U64{1} << 63, 64}};
  EXPECT_EQ(evaluate<U64>("shr.u64 %d, %a, %b;", wide), (std::vector<U64>{1, 0}));
  EXPECT_EQ(evaluate<U64>("shr.s64 %d, %a, %b;", wide), (std::vector<U64>{~U64{0}, ~U64{0}}));
}

TEST(Bits, FieldsCountsAndPermutations) {
  const std::vector<std::tuple<U32>> cases = {{0xf0f01234}};
  EXPECT_EQ(evaluate<U32>("bfe.u32 %d, %a, 4, 8;", cases).front(), 0x23u);
  EXPECT_EQ(evaluate<U32>("bfe.s32 %d, %a, 28, 8;", cases).front(), 0xffffffffu);
  EXPECT_EQ(evaluate<U32>("bfe.u32 %d, %a, 28, 8;", cases).front(), 0xfu);
  EXPECT_EQ(evaluate<U32>("bfe.s32 %d, %a, 0, 0;", cases).front(), 0u);
  EXPECT_EQ(evaluate<U32>("bfi.b32 %d, 0xabc, %a, 4, 8;", cases).front(), 0xf0f01bc4u);
  EXPECT_EQ(evaluate<U32>("bfind.u32 %d, %a;", std::vector<std::tuple<U32>>{{0}, {1}, {0x8000}}),
            (std::vector<U32>{~U32{0}, 0, 15}));
  EXPECT_EQ(evaluate<U32>("bfind.shiftamt.s32 %d, %a;", std::vector<std::tuple<U32>>{{0xfffffffe}}),
            std::vector<U32>{31});
  EXPECT_EQ(evaluate<U32>("popc.b32 %d, %a;", cases).front(), 13u);
  EXPECT_EQ(evaluate<U32>("clz.b32 %d, %a;", std::vector<std::tuple<U32>>{{0}, {1}}), (std::vector<U32>{32, 31}));
  EXPECT_EQ(evaluate<U32>("brev.b32 %d, %a;", std::vector<std::tuple<U32>>{{1}}).front(), 0x80000000u);
  EXPECT_EQ(evaluate<U32>("prmt.b32 %d, %a, 0x00000080, 0xc405;", cases).front(), 0xff803400u);
  EXPECT_EQ(evaluate<U32>("shf.l.wrap.b32 %d, %a, %a, 36;", cases).front(), 0x0f01234fu);
  EXPECT_EQ(evaluate<U32>("shf.r.clamp.b32 %d, %a, 1, 40;", cases).front(), 1u);
}

TEST(FloatArithmetic, ReturnsTheCanonicalNan) {
  const std::vector<std::tuple<float, float>> cases = {{kInfinity, -kInfinity}, {std::bit_cast<float>(0xffc12345u), 1}};
  EXPECT_EQ(bits(evaluate<float>("add.f32 %d, %a, %b;", cases)), (std::vector<U32>{kCanonicalNan, kCanonicalNan}));
  EXPECT_EQ(bits(evaluate<float>("mul.f32 %d, %a, 0f00000000;", cases)),
            (std::vector<U32>{kCanonicalNan, kCanonicalNan}));
  EXPECT_EQ(bits(evaluate<float>("sqrt.rn.f32 %d, 0fBF800000;", std::vector<std::tuple<float>>{{1}})),
            std::vector<U32>{kCanonicalNan});
}

TEST(FloatArithmetic, ExtremaIgnoreOneNanAndOrderZeros) {
  const std::vector<std::tuple<float, float>> cases = {
      {kNan, 1}, {1, kNan}, {kNan, kNan}, {-0.0f, 0.0f}, {0.0f, -0.0f}};
  const U32 one = std::bit_cast<U32>(1.0f);
  EXPECT_EQ(bits(evaluate<float>("min.f32 %d, %a, %b;", cases)),
            (std::vector<U32>{one, one, kCanonicalNan, 0x80000000, 0x80000000}));
  EXPECT_EQ(bits(evaluate<float>("max.f32 %d, %a, %b;", cases)), (std::vector<U32>{one, one, kCanonicalNan, 0, 0}));
  EXPECT_EQ(bits(evaluate<float>("max.NaN.f32 %d, %a, %b;", cases)),
            (std::vector<U32>{kCanonicalNan, kCanonicalNan, kCanonicalNan, 0, 0}));
}

TEST(FloatArithmetic, KeepsSubnormalsUnlessToldToFlush) {
  const std::vector<std::tuple<float, float>> cases = {{kLeast, kLeast}, {-kLeast, 0.0f}, {kLeastNormal, -kLeast}};
  EXPECT_EQ(bits(evaluate<float>("add.f32 %d, %a, %b;", cases)), (std::vector<U32>{2, 0x80000001, 0x007fffff}));
  EXPECT_EQ(bits(evaluate<float>("add.ftz.f32 %d, %a, %b;", cases)), (std::vector<U32>{0, 0, 0x00800000}));
  EXPECT_EQ(bits(evaluate<float>("mul.ftz.f32 %d, %a, 0f3F000000;", cases)), (std::vector<U32>{0, 0x80000000, 0}));
}

TEST(FloatArithmetic, FusesWithOneRounding) {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: the last term is lost if the product is rounded first.
  const std::vector<std::tuple<float, float>> cases = {{1 + 0x1p-12f, -(1 + 0x1p-11f)}};
  EXPECT_EQ(evaluate<float>("fma.rn.f32 %d, %a, %a, %b;", cases).front(), 0x1p-24f);
}

TEST(FloatArithmetic, RoundsInEachDirection) {
  // 1 + 2^-30 and 1 - 2^-30 have no float; the exact sum of 2^-149 and 1 neither.
  const std::vector<std::tuple<float, float>> cases = {
      {1, 0x1p-30f}, {1, -0x1p-30f}, {-1, kLeast}, {1, -1}, {kGreatest, kGreatest}};
  const float after = std::nextafter(1.0f, 2.0f), before = std::nextafter(1.0f, 0.0f);
  EXPECT_EQ(evaluate<float>("add.rn.f32 %d, %a, %b;", cases), (std::vector<float>{1, 1, -1, 0, kInfinity}));
  EXPECT_EQ(evaluate<float>("add.rz.f32 %d, %a, %b;", cases), (std::vector<float>{1, before, -before, 0, kGreatest}));
  EXPECT_EQ(bits(evaluate<float>("add.rm.f32 %d, %a, %b;", cases)), bits({1, before, -1, -0.0f, kGreatest}));
  EXPECT_EQ(bits(evaluate<float>("add.rp.f32 %d, %a, %b;", cases)), bits({after, 1, -before, 0, kInfinity}));
  EXPECT_EQ(evaluate<float>("fma.rm.f32 %d, %a, 0f3F800000, %b;", cases),
            (std::vector<float>{1, before, -1, 0, kGreatest}));
  EXPECT_EQ(evaluate<float>("mul.rp.f32 %d, %b, %b;", cases),
            (std::vector<float>{0x1p-60f, 0x1p-60f, kLeast, 1, kInfinity}));
}

TEST(FloatArithmetic, AgreesWithExactRoundingOnRandomProducts) {
  std::vector<std::tuple<float, float, float>> cases;
  U32 state = 12345;
  const auto next = [&] {
    return std::bit_cast<float>(((state = state * 1664525 + 1013904223) & 0x07ffffffu) + 0x3c000000u);
  };
  for (int i = 0; i < 1000; ++i) {
    const float a = next(), b = next();
    cases.push_back({a, b, i % 2 == 0 ? next() : -next()});
  }
  const std::vector<float> down = evaluate<float>("fma.rm.f32 %d, %a, %b, %c;", cases);
  const std::vector<float> up = evaluate<float>("fma.rp.f32 %d, %a, %b, %c;", cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto [a, b, c] = cases[i];
    const __float128 exact = static_cast<__float128>(a) * b + c;  // 113 bits hold it
    EXPECT_LE(down[i], exact) << i;
    EXPECT_GT(std::nextafter(down[i], kInfinity), exact) << i;
    EXPECT_GE(up[i], exact) << i;
    EXPECT_LT(std::nextafter(up[i], -kInfinity), exact) << i;
  }
}

TEST(FloatArithmetic, SignsAndSaturation) {
  const std::vector<std::tuple<float>> cases = {{-2}, {0.25f}, {kNan}, {3}};
  EXPECT_EQ(evaluate<float>("add.sat.f32 %d, %a, 0f00000000;", cases), (std::vector<float>{0, 0.25f, 0, 1}));
  EXPECT_EQ(bits(evaluate<float>("neg.f32 %d, %a;", std::vector{std::tuple<float>{0.0f}})),
            std::vector<U32>{0x80000000});
  EXPECT_EQ(evaluate<float>("abs.f32 %d, %a;", std::vector{std::tuple<float>{-kInfinity}}),
            std::vector<float>{kInfinity});
  EXPECT_EQ(
      evaluate<double>("fma.rn.f64 %d, %a, %a, 0dBFF0000000000000;", std::vector{std::tuple<double>{1 + 0x1p-30}}),
      std::vector<double>{0x1p-29 + 0x1p-60});
}

TEST(FloatFunctions, DivisionAndRootsAreCorrectlyRounded) {
  const std::vector<std::tuple<float, float>> cases = {{1, 3}, {1, 0}, {0, 0}, {1, 0x1p127f}};
  EXPECT_EQ(bits(evaluate<float>("div.rn.f32 %d, %a, %b;", cases)),
            bits({1.0f / 3, kInfinity, std::bit_cast<float>(kCanonicalNan), 0x1p-127f}));
  EXPECT_EQ(evaluate<float>("sqrt.rn.f32 %d, %a;", std::vector{std::tuple<float>{2}}),
            std::vector<float>{std::sqrt(2.0f)});
  EXPECT_EQ(evaluate<double>("rcp.rn.f64 %d, %a;", std::vector{std::tuple<double>{3}}), std::vector<double>{1.0 / 3});
}

TEST(FloatFunctions, PowersOfTwo) {
  const std::vector<std::tuple<float>> cases = {{-kInfinity}, {-149}, {-127}, {0}, {0.5f}, {128}};
  EXPECT_EQ(evaluate<float>("ex2.approx.f32 %d, %a;", cases),
            (std::vector<float>{0, kLeast, 0x1p-127f, 1, static_cast<float>(std::sqrt(2.0)), kInfinity}));
  EXPECT_EQ(evaluate<float>("ex2.approx.ftz.f32 %d, %a;", cases),
            (std::vector<float>{0, 0, 0, 1, static_cast<float>(std::sqrt(2.0)), kInfinity}));
}

}  // namespace
}  // namespace gradring::simulated_gpu
