// SPDX-License-Identifier: Apache-2.0
// Instructions that foreign programs ask for, against definitions and tables of the PTX ISA (version 9.0, chapter 9.7).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/values.h"
#include "tests/kernels/simulated_gpu/words.h"

namespace gradring::simulated_gpu {
namespace {

using Words = std::vector<U32>;

TEST(Carry, ChainsAddAndSubtract128Bits) {
  std::mt19937_64 random(3);
  std::vector<std::tuple<U64, U64, U64>> cases;
  for (int i = 0; i < 50; ++i)
    cases.emplace_back(random() | (i % 3 == 0 ? 0xFFFFFFFF00000000 : 0), random(), i % 5 == 0 ? 0 : random());
  const auto sums = evaluate<U64>("add.cc.u64 %rd1, %a, %b; addc.u64 %d, %c, 7;", cases);
  const auto rests = evaluate<U64>("sub.cc.u64 %rd1, %a, %b; subc.u64 %d, %c, 7;", cases);
  const auto products = evaluate<U64>("mad.lo.cc.u64 %rd1, %a, %b, %c; madc.hi.u64 %d, %a, %b, 5;", cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto [a, b, c] = cases[i];
    const __uint128_t left = static_cast<__uint128_t>(c) << 64 | a, right = static_cast<__uint128_t>(7) << 64 | b;
    EXPECT_EQ(sums[i], static_cast<U64>((left + right) >> 64));
    EXPECT_EQ(rests[i], static_cast<U64>((left - right) >> 64));
    const __uint128_t product = static_cast<__uint128_t>(a) * b + c + (static_cast<__uint128_t>(5) << 64);
    EXPECT_EQ(products[i], static_cast<U64>(product >> 64));
  }
}

TEST(Packed, DotProducts) {
  const std::vector<std::tuple<U32, U32, U32>> cases = {{0xFF020304, 0x01020304, 10}};
  EXPECT_EQ(evaluate<U32>("dp4a.u32.u32 %d, %a, %b, %c;", cases), Words{255 + 4 + 9 + 16 + 10});
  EXPECT_EQ(evaluate<U32>("dp4a.s32.u32 %d, %a, %b, %c;", cases), Words{static_cast<U32>(-1 + 4 + 9 + 16 + 10)});
  EXPECT_EQ(evaluate<U32>("dp2a.lo.u32.u32 %d, %a, %b, %c;", cases), Words{0x0304 * 4 + 0xFF02 * 3 + 10});
  EXPECT_EQ(evaluate<U32>("dp2a.hi.u32.u32 %d, %a, %b, %c;", cases), Words{0x0304 * 2 + 0xFF02 * 1 + 10});
  EXPECT_EQ(evaluate<U32>("vabsdiff4.u32.u32.u32.add %d, %a, %b, %c;", cases), Words{0xFE + 10});
}

TEST(Packed, DifferencesAndProductsOf24Bits) {
  const std::vector<std::tuple<U32, U32, U32>> cases = {{0xFFFFFFFE, 3, 100}};
  EXPECT_EQ(evaluate<U32>("sad.s32 %d, %a, %b, %c;", cases), Words{105});
  EXPECT_EQ(evaluate<U32>("sad.u32 %d, %a, %b, %c;", cases), Words{0xFFFFFFFB + 100});
  EXPECT_EQ(evaluate<U32>("mul24.lo.u32 %d, %a, %b;", cases), Words{0xFFFFFE * 3});
  EXPECT_EQ(evaluate<U32>("mul24.lo.s32 %d, %a, %b;", cases), Words{static_cast<U32>(-6)});
  EXPECT_EQ(evaluate<U32>("mul24.hi.u32 %d, %a, %b;", cases), Words{0xFFFFFEu * 3u >> 16});
  EXPECT_EQ(evaluate<U32>("mad24.lo.s32 %d, %a, %b, %c;", cases), Words{94});
}

// The table of lop3 in the PTX ISA: immLut = F(0xF0, 0xCC, 0xAA).
TEST(Bits, Lop3FollowsItsTable) {
  const std::vector<std::tuple<U32, U32, U32>> cases = {{0x12345678, 0x9ABCDEF0, 0x0F1E2D3C}};
  const auto [a, b, c] = cases[0];
  EXPECT_EQ(evaluate<U32>("lop3.b32 %d, %a, %b, %c, 0x80;", cases), Words{a & b & c});
  EXPECT_EQ(evaluate<U32>("lop3.b32 %d, %a, %b, %c, 0xFE;", cases), Words{a | b | c});
  EXPECT_EQ(evaluate<U32>("lop3.b32 %d, %a, %b, %c, 0x40;", cases), Words{a & b & ~c});
  EXPECT_EQ(evaluate<U32>("lop3.b32 %d, %a, %b, %c, 0x1A;", cases), Words{((a & b) | c) ^ a});
  EXPECT_EQ(evaluate<U32>("setp.eq.u32 %q1, %a, 0; lop3.or.b32 %r1|%q2, %a, 0, %c, 0x80, %q1; selp.u32 %d, 1, 0, %q2;",
                          cases),
            Words{0});
}

TEST(Bits, MasksAndFields) {
  const std::vector<std::tuple<U32, U32>> cases = {{4, 8}, {30, 8}, {0, 32}, {33, 1}};
  EXPECT_EQ(evaluate<U32>("bmsk.clamp.b32 %d, %a, %b;", cases), (Words{0xFF0, 0xC0000000, 0xFFFFFFFF, 0}));
  EXPECT_EQ(evaluate<U32>("bmsk.wrap.b32 %d, %a, %b;", cases), (Words{0xFF0, 0xC0000000, 0, 2}));
  const std::vector<std::tuple<U32, U32>> fields = {{0x1F8, 4}, {0x1F8, 3}, {0x1F8, 40}};
  EXPECT_EQ(evaluate<U32>("szext.clamp.s32 %d, %a, %b;", fields), (Words{0xFFFFFFF8, 0, 0x1F8}));
  EXPECT_EQ(evaluate<U32>("szext.wrap.u32 %d, %a, %b;", fields), (Words{8, 0, 0xF8}));
  const std::vector<std::tuple<U32, U32>> sets = {{0x96, 1}, {0x96, 3}, {0x96, static_cast<U32>(-1)}, {0x96, 0}};
  EXPECT_EQ(evaluate<U32>("fns.b32 %d, %a, 2, %b;", sets), (Words{2, 7, 2, 2}));
  EXPECT_EQ(evaluate<U32>("cnot.b32 %d, %a;", std::vector<std::tuple<U32>>{{0}, {5}}), (Words{1, 0}));
}

// Table of prmt's modes, bytes from the upper one down.
TEST(Bits, PermuteModes) {
  std::vector<std::tuple<U32, U32, U32>> cases;
  for (U32 c = 0; c < 4; ++c) cases.emplace_back(0x03020100, 0x07060504, c);
  const auto of = [&](const std::string& mode) {
    return evaluate<U32>("prmt.b32." + mode + " %d, %a, %b, %c;", cases);
  };
  EXPECT_EQ(of("f4e"), (Words{0x03020100, 0x04030201, 0x05040302, 0x06050403}));
  EXPECT_EQ(of("b4e"), (Words{0x05060700, 0x06070001, 0x07000102, 0x00010203}));
  EXPECT_EQ(of("rc8"), (Words{0x00000000, 0x01010101, 0x02020202, 0x03030303}));
  EXPECT_EQ(of("ecl"), (Words{0x03020100, 0x03020101, 0x03020202, 0x03030303}));
  EXPECT_EQ(of("ecr"), (Words{0x00000000, 0x01010100, 0x02020100, 0x03020100}));
  EXPECT_EQ(of("rc16"), (Words{0x01000100, 0x03020302, 0x01000100, 0x03020302}));
}

TEST(Selection, SetGivesAllOnesOrOne) {
  const std::vector<std::tuple<float, float>> cases = {{1, 2}, {2, 1}, {kNan, 1}};
  EXPECT_EQ(evaluate<U32>("set.lt.u32.f32 %d, %a, %b;", cases), (Words{~U32{0}, 0, 0}));
  EXPECT_EQ(evaluate<float>("set.ltu.f32.f32 %d, %a, %b;", cases), (std::vector<float>{1, 0, 1}));
  EXPECT_EQ(evaluate<U32>("setp.gt.f32 %q1, %a, 1.5; set.lt.or.s32.f32 %d, %a, %b, %q1;", cases),
            (Words{~U32{0}, ~U32{0}, 0}));
  const std::vector<std::tuple<U32, U32>> halves = {{0x3C004000, 0x40003C00}, {0x7FFF0001, 0x3C008001}};
  EXPECT_EQ(evaluate<U32>("set.gt.f16x2.f16x2 %d, %a, %b;", halves), (Words{0x00003C00, 0x00003C00}));
  EXPECT_EQ(evaluate<U32>("set.gt.u32.f16x2 %d, %a, %b;", halves), (Words{0x0000FFFF, 0x0000FFFF}));
  EXPECT_EQ(evaluate<U32>("set.eq.ftz.f16x2.f16x2 %d, %a, %b;", halves), (Words{0, 0x00003C00}));
  EXPECT_EQ(evaluate<U32>("set.lo.u32.u32 %d, %a, %b;", halves), (Words{~U32{0}, 0}));
}

TEST(Selection, BySignAndProperties) {
  const std::vector<std::tuple<U32, U32, float>> cases = {{1, 2, 0.0f}, {1, 2, -1.0f}, {1, 2, kNan}, {1, 2, -0.0f}};
  EXPECT_EQ(evaluate<U32>("slct.u32.f32 %d, %a, %b, %c;", cases), (Words{1, 2, 2, 1}));
  const std::vector<std::tuple<float>> values = {{1}, {kInfinity}, {kNan}, {kLeast}};
  const auto of = [&](const std::string& name) {
    return evaluate<U32>("testp." + name + ".f32 %q1, %a; selp.u32 %d, 1, 0, %q1;", values);
  };
  EXPECT_EQ(of("finite"), (Words{1, 0, 0, 1}));
  EXPECT_EQ(of("infinite"), (Words{0, 1, 0, 0}));
  EXPECT_EQ(of("number"), (Words{1, 1, 0, 1}));
  EXPECT_EQ(of("notanumber"), (Words{0, 0, 1, 0}));
  EXPECT_EQ(of("normal"), (Words{1, 0, 0, 0}));
  EXPECT_EQ(of("subnormal"), (Words{0, 0, 0, 1}));
  EXPECT_EQ(evaluate<float>("copysign.f32 %d, %a, %b;", std::vector<std::tuple<float, float>>{{-0.0f, 3}, {1, -2}}),
            (std::vector<float>{-3, 2}));
  EXPECT_EQ(
      evaluate<float>("max.xorsign.abs.f32 %d, %a, %b;", std::vector<std::tuple<float, float>>{{-1, 3}, {-4, -2}}),
      (std::vector<float>{-3, 4}));
}

/// A kernel of one warp that writes %r1 of each thread.
Words of_warp(const std::string& body, Words words = numbered(32)) {
  GlobalMemory memory;
  DeviceArray<U32> array(memory, words);
  TestKernel(kThread + body, 1).run(memory, {array.address()}, {}, {32});
  return array.values();
}

TEST(WarpInstructions, ElectAndMatchAll) {
  Words expected(32, 2);
  expected[2] = 102;
  for (const unsigned lane : {0u, 1u}) expected[lane] = lane;
  EXPECT_EQ(of_warp("setp.lt.u32 %q1, %thread, 2; @%q1 bra $end; elect.sync %r1|%q2, 0xfffffffc;\n"
                    "@%q2 add.u32 %r1, %r1, 100; st.global.u32 [%address], %r1; $end:"),
            expected);
  EXPECT_EQ(of_warp("shr.u32 %r2, %thread, 5; match.all.sync.b32 %r1|%q1, %r2, -1; @!%q1 mov.u32 %r1, 1;\n"
                    "st.global.u32 [%address], %r1;"),
            Words(32, ~U32{0}));
  EXPECT_EQ(of_warp("match.all.sync.b32 %r1|%q1, %thread, -1; @%q1 mov.u32 %r1, 1; st.global.u32 [%address], %r1;"),
            Words(32, 0));
}

TEST(Clock, IsReadInOrderAndEndsLoops) {
  const Words words = of_warp(
      "mov.u64 %rd1, %clock64; $again: mov.u64 %rd2, %clock64; sub.u64 %rd3, %rd2, %rd1;\n"
      "setp.lt.u64 %q1, %rd3, 1000000000; @%q1 bra $again; mov.u64 %rd4, %globaltimer; mov.u64 %rd5, %globaltimer;\n"
      "setp.gt.u64 %q2, %rd5, %rd4; selp.u32 %r1, 1, 0, %q2; st.global.u32 [%address], %r1;");
  EXPECT_EQ(words, Words(32, 1));
}

TEST(Atomics, OfPairsAndVectors) {
  const std::string pair = "mov.b32 %r2, 0x3C004000; red.global.add.noftz.f16x2 [%p0], %r2;";  // (1, 2) each
  EXPECT_EQ(of_warp(pair, Words(32, 0))[0], 0x50005400u);                                      // (32, 64)
  const std::string brain = "mov.b16 %rs1, 0x3F80; atom.global.add.noftz.bf16 %rs2, [%p0], %rs1;";
  EXPECT_EQ(of_warp(brain, Words(32, 0))[0], 0x4200u);
  const std::string vector =
      "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; red.global.v2.f32.add [%p0+8], {%f1, %f2};";
  const Words sums = of_warp(vector, Words(32, 0));
  EXPECT_EQ(std::bit_cast<float>(sums[2]), 32.0f);
  EXPECT_EQ(std::bit_cast<float>(sums[3]), 64.0f);
}

TEST(Hints, ChangeNothing) {
  EXPECT_EQ(of_warp("createpolicy.fractional.L2::evict_first.b64 %rd1, 1.0; prefetch.global.L2 [%address];\n"
                    "ld.global.L1::evict_last.L2::cache_hint.L2::128B.u32 %r1, [%address], %rd1; add.u32 %r1, %r1, 1;\n"
                    "nanosleep.u32 100; st.global.L2::cache_hint.u32 [%address], %r1, %rd1;\n"
                    "discard.global.L2 [%p0], 128; setmaxnreg.inc.sync.aligned.u32 240; pmevent 1;"),
            [] {
              Words next = numbered(32);
              for (U32& word : next) ++word;
              return next;
            }());
}

TEST(Functions, OfHalves) {
  const std::vector<std::tuple<U32>> cases = {{0x3C00C000}};  // 1, -2
  EXPECT_EQ(evaluate<U32>("ex2.approx.f16x2 %d, %a;", cases), Words{0x40003400});
  EXPECT_EQ(evaluate<U32>("tanh.approx.f16x2 %d, %a;", cases), Words{0x3A18BBB6});
  EXPECT_EQ(evaluate<double>("rsqrt.approx.f64 %d, %a;", std::vector<std::tuple<double>>{{0.25}}),
            std::vector<double>{2});
  EXPECT_EQ(evaluate<double>("rcp.approx.ftz.f64 %d, %a;", std::vector<std::tuple<double>>{{4}}),
            std::vector<double>{0.25});
}

}  // namespace
}  // namespace gradring::simulated_gpu
