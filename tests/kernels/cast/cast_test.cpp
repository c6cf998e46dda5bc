// SPDX-License-Identifier: Apache-2.0
#include "kernels/cast/cast.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "kernels/runtime/error.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::cast {
namespace {

using namespace gradring::tests;

constexpr std::size_t kSizes[] = {0, 1, 31, 32, 33, 1023, 20001};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

TEST(Cast, GivesTheReferencesBitsBetweenAllTypes) {
  for (DType from : kTypes)
    for (DType to : kTypes)
      for (std::size_t elements : kSizes)
        for_each_variant(variants(), from, [&](const Variant& variant, Stream& stream) {
          const TypedArray x(from, random_values(elements, 1, -100, 100));
          TypedArray expected = TypedArray::unwritten(to, elements);
          TypedArray actual = TypedArray::unwritten(to, elements);
          reference::run({.from = from, .to = to, .x = x.data(), .y = expected.data(), .elements = elements});
          variant.run(stream, {.from = from, .to = to, .x = x.data(), .y = actual.data(), .elements = elements});
          finish(stream);
          expect_equal(actual.values(), expected.values());
        });
}

TEST(Cast, RoundsToEvenOverflowsToInfinityKeepsNaN) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> values = {1 + 0x1p-11, 1 + 0x3p-11, 65519, 65520, -1e9, 0x1p-24, 0x1p-26, -infinity, nan};
  const std::vector<double> rounded = {1, 1 + 0x1p-9, 65504, infinity, -infinity, 0x1p-24, 0, -infinity, nan};
  for_each_variant(variants(), DType::f32, [&](const Variant& variant, Stream& stream) {
    const TypedArray x(DType::f32, values);
    TypedArray y = TypedArray::unwritten(DType::f16, values.size());
    variant.run(stream, {DType::f32, DType::f16, x.data(), y.data(), values.size()});
    finish(stream);
    expect_equal(y.values(), rounded);
  });
}

TEST(Cast, RefusesOverlapAndOtherTypes) {
  float data[4] = {};
  EXPECT_THROW(check_args({DType::f32, DType::f16, data, data, 4}), InvalidArgument);
  EXPECT_THROW(check_args({DType::u8, DType::f32, data, data + 2, 2}), InvalidArgument);
  EXPECT_THROW(check_args({DType::f32, DType::f32, nullptr, data, 2}), InvalidArgument);
  EXPECT_NO_THROW(check_args({}));
}

}  // namespace
}  // namespace gradring::kernels::cast
