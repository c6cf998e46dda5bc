// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum_of_squares/sum_of_squares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

#include "kernels/runtime/error.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::sum_of_squares {
namespace {

using namespace gradring::tests;

constexpr std::size_t kSizes[] = {0, 1, 31, 32, 33, 1023, 20001};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

struct Results {
  float sum = -1;
  std::int32_t non_finite = -1;
};

Results run(const Variant& variant, Stream& stream, const TypedArray& x) {
  Results results;
  std::vector<float> workspace(block_count(x.elements()) + 1, std::nanf(""));
  variant.run(stream, {.dtype = x.dtype(),
                       .x = x.data(),
                       .elements = x.elements(),
                       .sum = &results.sum,
                       .non_finite = &results.non_finite,
                       .workspace = workspace.data()});
  finish(stream);
  return results;
}

TEST(SumOfSquares, StaysWithinItsBound) {
  for (DType dtype : kTypes)
    for (std::size_t elements : kSizes)
      for_each_variant(variants(), dtype, [&](const Variant& variant, Stream& stream) {
        const TypedArray x(dtype, random_values(elements, 1));
        float sum = -1;
        float workspace = 0;
        std::int32_t non_finite = -1;
        reference::run({dtype, x.data(), elements, &sum, &non_finite, &workspace});
        const Results actual = run(variant, stream, x);
        EXPECT_NEAR(actual.sum, sum, (static_cast<double>(elements) / 65536 + 300) * 0x1p-24 * sum);
        EXPECT_EQ(actual.non_finite, 0);
        EXPECT_EQ(non_finite, 0);
      });
}

TEST(SumOfSquares, FindsOneBadNumberAnywhere) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto expect_found = [](DType dtype, std::size_t where, double bad) {
    std::vector<double> values = random_values(20001, 2);
    values[where] = bad;
    const TypedArray x(dtype, values);
    for_each_variant(variants(), dtype, [&](const Variant& variant, Stream& stream) {
      EXPECT_EQ(run(variant, stream, x).non_finite, 1) << bad << " at " << where;
    });
  };
  for (std::size_t where : {0, 31, 8191, 20000}) expect_found(DType::f32, where, infinity);
  for (DType dtype : kTypes)
    for (double bad : {-infinity, std::numeric_limits<double>::quiet_NaN()}) expect_found(dtype, 33, bad);
}

TEST(SumOfSquares, DoesNotTakeAnOverflowOfTheSumForABadNumber) {
  for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
    const Results results = run(variant, stream, TypedArray(DType::f32, std::vector<double>(100, 3e38)));
    EXPECT_TRUE(std::isinf(results.sum));
    EXPECT_EQ(results.non_finite, 0);
  });
}

TEST(SumOfSquares, GivesTheSameBitsWhateverTheWorkers) {
  const TypedArray x(DType::f32, random_values(100003, 3));
  for (const Variant& variant : variants()) {
    std::vector<float> sums;
    for_each_host_stream([&](Device&, Stream& stream) { sums.push_back(run(variant, stream, x).sum); });
    for (float sum : sums) EXPECT_EQ(sum, sums.front());
  }
}

/// What `variant` makes of the blocks of `x`, computed in pieces that end behind `ends` blocks.
std::vector<float> blocks_of(const Variant& variant, Stream& stream, std::span<const float> x,
                             std::initializer_list<std::size_t> ends) {
  std::vector<float> blocks(block_count(x.size()), -1.0f);
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    const std::size_t last = std::min(end * kBlock, x.size());
    variant.blocks(stream, {.dtype = DType::f32,
                            .x = x.data() + begin * kBlock,
                            .elements = last - begin * kBlock,
                            .blocks = blocks.data() + begin});
    begin = end;
  }
  finish(stream);
  return blocks;
}

// Ranks that hold shards of the gradients find the bits that one rank with all of them finds.
TEST(SumOfSquares, GivesTheSameBitsInPieces) {
  const std::vector<double> values = random_values(20 * kBlock + 17, 4);
  const std::vector<float> x(values.begin(), values.end());
  for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
    const std::vector<float> whole = blocks_of(variant, stream, x, {21});
    EXPECT_EQ(blocks_of(variant, stream, x, {1, 8, 13, 21}), whole);
    std::vector<float> longer(x);
    longer.resize(21 * kBlock, 0.0f);
    EXPECT_EQ(blocks_of(variant, stream, longer, {20, 21}), whole) << "zeros behind the end change nothing";
    for (std::size_t b = 0; b < whole.size(); ++b) {
      double exact = 0;
      for (std::size_t i = b * kBlock; i < std::min((b + 1) * kBlock, x.size()); ++i)
        exact += double{x[i]} * double{x[i]};
      EXPECT_NEAR(whole[b], exact, exact * 1e-6) << "block " << b;
    }
    Results results;
    variant.total(
        stream,
        {.blocks = whole.data(), .count = whole.size(), .sum = &results.sum, .non_finite = &results.non_finite});
    finish(stream);
    EXPECT_EQ(results.sum, run(variant, stream, TypedArray(DType::f32, values)).sum);
    EXPECT_EQ(results.non_finite, 0);
  });
}

TEST(SumOfSquares, MarksTheBlockOfABadNumber) {
  std::vector<float> x(5 * kBlock, 1.0f);
  x[2 * kBlock + 63] = -std::numeric_limits<float>::infinity();
  x[3 * kBlock] = 3e38f;
  for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
    const std::vector<float> blocks = blocks_of(variant, stream, x, {5});
    EXPECT_TRUE(std::isnan(blocks[2]));
    EXPECT_TRUE(std::isinf(blocks[3])) << "its square overflows, but it is a number";
    for (const std::size_t good : {0, 1, 4}) EXPECT_EQ(blocks[good], 64.0f);
  });
}

TEST(SumOfSquares, RefusesNullAndOtherTypes) {
  float number = 0;
  std::int32_t flag = 0;
  EXPECT_THROW(check_args(Args{DType::f32, nullptr, 1, &number, &flag, &number}), InvalidArgument);
  EXPECT_THROW(check_args(Args{DType::f32, &number, 1, nullptr, &flag, &number}), InvalidArgument);
  EXPECT_THROW(check_args(Args{DType::f32, &number, 1, &number, nullptr, &number}), InvalidArgument);
  EXPECT_THROW(check_args(Args{DType::f32, &number, 1, &number, &flag, nullptr}), InvalidArgument);
  EXPECT_THROW(check_args(Args{DType::i64, &number, 1, &number, &flag, &number}), InvalidArgument);
  EXPECT_THROW(check_args(BlocksArgs{DType::f32, &number, 1, nullptr}), InvalidArgument);
  EXPECT_THROW(check_args(BlocksArgs{DType::i64, &number, 1, &number}), InvalidArgument);
  EXPECT_THROW(check_args(TotalArgs{nullptr, 1, &number, &flag}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::sum_of_squares
