// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/kernels/simt/device_fixture.h"
#include "tests/kernels/simt/kernels.h"

namespace gradring::simt_test {
namespace {

class Number : public EachOrder {};
SIMT_IN_EACH_ORDER(Number);

template <class Narrow>
std::vector<Narrow> all_patterns() {
  std::vector<Narrow> patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i].bits = static_cast<std::uint16_t>(i);
  return patterns;
}

template <class Narrow>
void expect_conversions_as_on_the_host(kernels::Stream& stream) {
  const std::vector<Narrow> narrow = all_patterns<Narrow>();
  std::vector<float> wide(narrow.size());
  std::vector<Narrow> again(narrow.size());
  convert(stream, narrow.data(), wide.data(), again.data());
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    const float host = to_float(narrow[i]);
    if (std::isnan(host)) {
      ASSERT_TRUE(std::isnan(wide[i])) << i;
      ASSERT_TRUE(std::isnan(to_float(again[i]))) << i;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(host)) << i;
      ASSERT_EQ(again[i].bits, narrow[i].bits) << i;
    }
  }
}

TEST_P(Number, ConvertsEveryHalf) { expect_conversions_as_on_the_host<kernels::Half>(*stream_); }
TEST_P(Number, ConvertsEveryBfloat16) { expect_conversions_as_on_the_host<kernels::BFloat16>(*stream_); }

TEST_P(Number, RoundsAsTheHostDoes) {
  std::vector<float> wide;
  for (std::uint32_t bits = 0x30000000u; bits < 0x48000000u; bits += 0x00000fffu) {
    wide.push_back(std::bit_cast<float>(bits));
    wide.push_back(-std::bit_cast<float>((bits & 0xffffe000u) | 0x1000u));  // half way between two neighbours
  }
  std::vector<kernels::Half> half(wide.size());
  std::vector<kernels::BFloat16> brain(wide.size());
  round_all(*stream_, wide.data(), half.data(), brain.data(), wide.size());
  for (std::size_t i = 0; i < wide.size(); ++i) {
    ASSERT_EQ(half[i].bits, kernels::to_half(wide[i]).bits) << wide[i];
    ASSERT_EQ(brain[i].bits, kernels::to_bfloat16(wide[i]).bits) << wide[i];
  }
}

TEST_P(Number, HalvesRoundAfterEachOperation) {
  float results[kHalfResults];
  const float a = 1.0f + 0x1p-10f, b = 3.0f;
  half_arithmetic(*stream_, a, b, results);
  const auto rounded = [](float value) { return kernels::to_float(kernels::to_half(value)); };
  EXPECT_EQ(results[0], rounded(a + b));
  EXPECT_EQ(results[1], rounded(a - b));
  EXPECT_EQ(results[2], rounded(a * b));
  EXPECT_EQ(results[3], rounded(a / b));
  EXPECT_EQ(results[4], rounded(a * b + a));
  EXPECT_EQ(results[5], b);
  EXPECT_EQ(results[6], rounded(a * b));
  EXPECT_EQ(results[7], rounded(a * b));
}

TEST_P(Number, AtomicsLoseNoUpdate) {
  constexpr unsigned kBlocks = 4, kThreads = 32;
  constexpr int kAll = kBlocks * kThreads;
  AtomicResults results;
  exercise_atomics(*stream_, kBlocks, kThreads, &results);
  EXPECT_EQ(results.added, 2 * kAll);
  EXPECT_EQ(results.subtracted, -kAll);
  EXPECT_EQ(results.least, 0);
  EXPECT_EQ(results.greatest, kAll - 1);
  EXPECT_EQ(results.bits_or, 0xff);
  EXPECT_EQ(results.bits_xor, 0);
  EXPECT_EQ(results.bits_and, ~0xffu);
  EXPECT_EQ(results.wrapped, kAll % 10);
  EXPECT_EQ(results.wide, static_cast<unsigned long long>(kAll) << 32);
  EXPECT_EQ(results.sum, 0.5f * kAll);
  EXPECT_EQ(results.precise, 0.25 * kAll);
  EXPECT_EQ(to_float(results.half_sum[0]), 0.25f * kAll);
  EXPECT_EQ(to_float(results.half_sum[1]), 1.0f * kAll);
  EXPECT_EQ(to_float(results.brain_sum[0]), 0.5f * kAll);
  EXPECT_EQ(to_float(results.brain_sum[1]), 1.0f * kAll);
  EXPECT_GE(results.swapped_in, 1);
  EXPECT_LE(results.swapped_in, kAll);
  EXPECT_EQ(results.lock_protected, int{kBlocks});
}

TEST_P(Number, LastBlockSeesAllOthers) {
  constexpr unsigned kBlocks = 9;
  std::vector<float> x(kBlocks * 64), partial(kBlocks);
  std::iota(x.begin(), x.end(), 0.0f);
  unsigned finished = 0;
  float total = 0.0f;
  sum_by_last_block(*stream_, kBlocks, x.data(), partial.data(), &finished, &total);
  EXPECT_EQ(total, 0.5f * 576 * 575);
  EXPECT_EQ(finished, 0u);  // atomicInc has wrapped: ready for the next launch
}

TEST_P(Number, ScalarFunctions) {
  const float x = 0.75f;
  double results[kScalarResults];
  exercise_scalars(*stream_, x, results);
  const double expected[kScalarResults] = {std::exp(x),
                                           std::log(x),
                                           1.0 / std::sqrt(x),
                                           1.0 / x,
                                           x,
                                           x * x + 1.0,
                                           8,
                                           31,
                                           4,
                                           2147483648.0,
                                           3,
                                           2,
                                           -2,
                                           0x3f800000,
                                           2.0,
                                           x,
                                           x,
                                           2,
                                           2,
                                           64,
                                           3,
                                           0};
  for (int i = 0; i < kScalarResults; ++i)
    EXPECT_NEAR(results[i], expected[i], 2e-6 * std::abs(expected[i])) << "function " << i;
}

}  // namespace
}  // namespace gradring::simt_test
