// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum_of_squares/sum_of_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
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
  std::vector<float> workspace(workspace_bytes() / sizeof(float), std::nanf(""));
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

TEST(SumOfSquares, RefusesNullAndOtherTypes) {
  float number = 0;
  std::int32_t flag = 0;
  EXPECT_THROW(check_args({DType::f32, nullptr, 1, &number, &flag, &number}), InvalidArgument);
  EXPECT_THROW(check_args({DType::f32, &number, 1, nullptr, &flag, &number}), InvalidArgument);
  EXPECT_THROW(check_args({DType::f32, &number, 1, &number, nullptr, &number}), InvalidArgument);
  EXPECT_THROW(check_args({DType::f32, &number, 1, &number, &flag, nullptr}), InvalidArgument);
  EXPECT_THROW(check_args({DType::i64, &number, 1, &number, &flag, &number}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::sum_of_squares
