// SPDX-License-Identifier: Apache-2.0
#include "kernels/bias/bias.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "kernels/runtime/error.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::bias {
namespace {

using namespace gradring::tests;

struct Case {
  std::int64_t rows, channels;
};
constexpr Case kCases[] = {{0, 5},    {5, 0},   {1, 1},    {31, 33}, {33, 31},
                           {1023, 7}, {7, 129}, {300, 32}, {2, 10},  {2 * 26 * 26, 32}};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

TEST(Bias, AddsWithOneRoundingAlsoInPlace) {
  for (DType dtype : kTypes)
    for (const Case& c : kCases)
      for_each_variant(variants(), dtype, [&](const Variant& variant, Stream& stream) {
        const TypedArray x(dtype, random_values(size(c.rows * c.channels), 1));
        const TypedArray bias(dtype, random_values(size(c.channels), 2));
        TypedArray expected = TypedArray::unwritten(dtype, x.elements());
        TypedArray actual = expected;
        TypedArray in_place = x;
        reference::add({dtype, c.rows, c.channels, x.data(), bias.data(), expected.data()});
        variant.add(stream, {dtype, c.rows, c.channels, x.data(), bias.data(), actual.data()});
        variant.add(stream, {dtype, c.rows, c.channels, in_place.data(), bias.data(), in_place.data()});
        finish(stream);
        expect_equal(actual.values(), expected.values());
        expect_equal(in_place.values(), expected.values());
      });
}

TEST(Bias, SumsTheGradientWithinItsBound) {
  for (DType dtype : kTypes)
    for (const Case& c : kCases)
      for (bool accumulate : {false, true})
        for_each_variant(variants(), dtype, [&](const Variant& variant, Stream& stream) {
          const TypedArray dy(dtype, random_values(size(c.rows * c.channels), 3));
          TypedArray expected(DType::f32, random_values(size(c.channels), 4));
          TypedArray actual = expected;
          reference::grad({dtype, c.rows, c.channels, dy.data(), expected.as<float>(), accumulate});
          variant.grad(stream, {dtype, c.rows, c.channels, dy.data(), actual.as<float>(), accumulate});
          finish(stream);
          // The contract's bound, with |dy| and |db| at most 1.
          const double bound = (static_cast<double>(c.rows) / 256 + 258) * 0x1p-24 * static_cast<double>(c.rows + 1);
          expect_close(actual.values(), expected.values(), [&](std::size_t) { return bound; });
        });
}

TEST(Bias, ReferenceGradientMatchesFiniteDifferences) {
  const std::int64_t rows = 9;
  const std::int64_t channels = 5;
  const TypedArray x(DType::f32, random_values(45, 5));
  const TypedArray dy(DType::f32, random_values(45, 6));
  const std::vector<double> weights = dy.values();
  const auto loss = [&](std::span<const double> b) {
    const TypedArray bias(DType::f32, b);
    TypedArray y = TypedArray::unwritten(DType::f32, 45);
    reference::add({DType::f32, rows, channels, x.data(), bias.data(), y.data()});
    const std::vector<double> values = y.values();
    return std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
  };
  TypedArray db = TypedArray::unwritten(DType::f32, 5);
  reference::grad({DType::f32, rows, channels, dy.data(), db.as<float>(), false});
  expect_gradient(loss, random_values(5, 7), db.values(), 0.5, 1e-5);
}

TEST(Bias, RefusesNegativeExtentsNullAndOtherTypes) {
  float data[4] = {};
  EXPECT_THROW(check_args(AddArgs{DType::f32, -1, 2, data, data, data}), InvalidArgument);
  EXPECT_THROW(check_args(AddArgs{DType::f32, 1, 2, data, nullptr, data + 2}), InvalidArgument);
  EXPECT_THROW(check_args(AddArgs{DType::u8, 1, 2, data, data, data + 2}), InvalidArgument);
  EXPECT_THROW(check_args(AddArgs{DType::f32, 1, 2, data, data, data + 1}), InvalidArgument);
  EXPECT_THROW(check_args(GradArgs{DType::f32, 1, -2, data, data, false}), InvalidArgument);
  EXPECT_THROW(check_args(GradArgs{DType::f32, 1, 2, data, nullptr, false}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::bias
