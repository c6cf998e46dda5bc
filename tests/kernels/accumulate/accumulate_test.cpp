// SPDX-License-Identifier: Apache-2.0
#include "kernels/accumulate/accumulate.h"

#include <gtest/gtest.h>

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
  EXPECT_THROW(check_args({DType::i32, data, data, 3}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::accumulate
