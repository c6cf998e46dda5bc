// SPDX-License-Identifier: Apache-2.0
#include "kernels/accumulate/accumulate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/runtime/error.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::accumulate {
namespace {

using namespace gradring::tests;

constexpr std::size_t kSizes[] = {0, 1, 31, 32, 33, 1023, 20001};

TEST(Accumulate, IsTheReferenceRoundedOnce) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (std::size_t elements : kSizes)
      for_each_variant(variants(), dtype, [&](const Variant& variant, Stream& stream) {
        const TypedArray x(dtype, random_values(elements, 1));
        TypedArray expected(dtype, random_values(elements, 2));
        TypedArray actual = expected;
        reference::run({dtype, x.data(), expected.data(), elements});
        variant.run(stream, {dtype, x.data(), actual.data(), elements});
        finish(stream);
        expect_equal(actual.values(), expected.values());
      });
}

/// Numbers that no double holds, and sums that wrap around.
TEST(Accumulate, AddsWholeNumbersExactly) {
  for_each_variant(variants(), DType::i64, [&](const Variant& variant, Stream& stream) {
    for (std::size_t elements : kSizes) {
      std::vector<std::int64_t> x(elements), y(elements), expected(elements);
      for (std::size_t i = 0; i < elements; ++i) {
        x[i] = i % 5 == 0 ? std::numeric_limits<std::int64_t>::max() : -static_cast<std::int64_t>(i) * 1'000'000'007;
        y[i] = (std::int64_t{1} << 60) + static_cast<std::int64_t>(i);
        expected[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(x[i]) + static_cast<std::uint64_t>(y[i]));
      }
      std::vector<std::int64_t> reference = y;
      reference::run({DType::i64, x.data(), reference.data(), elements});
      EXPECT_EQ(reference, expected);
      variant.run(stream, {DType::i64, x.data(), y.data(), elements});
      finish(stream);
      EXPECT_EQ(y, expected);
    }
  });
}

TEST(Accumulate, AddsWholeNumbersOf32Bits) {
  for_each_variant(variants(), DType::i32, [&](const Variant& variant, Stream& stream) {
    const std::vector<std::int32_t> x = {1, -5, std::numeric_limits<std::int32_t>::max()};
    std::vector<std::int32_t> y = {(1 << 24) + 1, 5, 1};
    const std::vector<std::int32_t> expected = {(1 << 24) + 2, 0, std::numeric_limits<std::int32_t>::min()};
    std::vector<std::int32_t> reference = y;
    reference::run({DType::i32, x.data(), reference.data(), 3});
    EXPECT_EQ(reference, expected);
    variant.run(stream, {DType::i32, x.data(), y.data(), 3});
    finish(stream);
    EXPECT_EQ(y, expected);
  });
}

TEST(Accumulate, DoublesInPlace) {
  for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
    TypedArray y(DType::f32, std::vector<double>{1, -2, 3});
    variant.run(stream, {DType::f32, y.data(), y.data(), 3});
    finish(stream);
    expect_equal(y.values(), std::vector<double>{2, -4, 6});
  });
}

TEST(Accumulate, RefusesPartialOverlapNullAndOtherTypes) {
  float data[4] = {};
  EXPECT_THROW(check_args({DType::f32, data, data + 1, 3}), InvalidArgument);
  EXPECT_THROW(check_args({DType::f32, nullptr, data, 3}), InvalidArgument);
  EXPECT_THROW(check_args({DType::u8, data, data, 3}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::accumulate
