// SPDX-License-Identifier: Apache-2.0
#include "kernels/relu/relu.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

#include "kernels/runtime/error.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::relu {
namespace {

using namespace gradring::tests;

constexpr std::size_t kSizes[] = {0, 1, 31, 32, 33, 1023, 20001};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

TEST(Relu, IsExactForwardAndBackwardAlsoInPlace) {
  for (DType dtype : kTypes)
    for (std::size_t n : kSizes)
      for_each_variant(variants(), dtype, [&](const Variant& variant, Stream& stream) {
        const TypedArray x(dtype, random_values(n, 1));
        const TypedArray dy(dtype, random_values(n, 2));
        TypedArray y = TypedArray::unwritten(dtype, n);
        TypedArray dx = y;
        reference::forward({dtype, x.data(), y.data(), n});
        reference::backward({dtype, y.data(), dy.data(), dx.data(), n});
        TypedArray actual_y = TypedArray::unwritten(dtype, n);
        TypedArray actual_dx = actual_y;
        TypedArray in_place_y = x;
        TypedArray in_place_dx = dy;
        variant.forward(stream, {dtype, x.data(), actual_y.data(), n});
        variant.forward(stream, {dtype, in_place_y.data(), in_place_y.data(), n});
        variant.backward(stream, {dtype, y.data(), dy.data(), actual_dx.data(), n});
        variant.backward(stream, {dtype, y.data(), in_place_dx.data(), in_place_dx.data(), n});
        finish(stream);
        expect_equal(actual_y.values(), y.values());
        expect_equal(in_place_y.values(), y.values());
        expect_equal(actual_dx.values(), dx.values());
        expect_equal(in_place_dx.values(), dx.values());
      });
}

TEST(Relu, KeepsNaNAndInfinity) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (DType dtype : kTypes)
    for_each_variant(variants(), dtype, [&](const Variant& variant, Stream& stream) {
      TypedArray y(dtype, std::vector<double>{nan, infinity, -infinity, -0.0, 1});
      TypedArray dx(dtype, std::vector<double>{1, 2, 3, 4, 5});
      variant.forward(stream, {dtype, y.data(), y.data(), 5});
      variant.backward(stream, {dtype, y.data(), dx.data(), dx.data(), 5});
      finish(stream);
      expect_equal(y.values(), std::vector<double>{nan, infinity, 0, 0, 1});
      expect_equal(dx.values(), std::vector<double>{0, 2, 0, 0, 5});
    });
}

TEST(Relu, ReferenceGradientMatchesFiniteDifferences) {
  const TypedArray x(DType::f32, distinct_values(40, 3, 1.0 / 64));
  const TypedArray dy(DType::f32, random_values(40, 4));
  const std::vector<double> weights = dy.values();
  TypedArray y = TypedArray::unwritten(DType::f32, 40);
  const auto loss = [&](std::span<const double> at) {
    const TypedArray point(DType::f32, at);
    reference::forward({DType::f32, point.data(), y.data(), 40});
    const std::vector<double> values = y.values();
    return std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
  };
  TypedArray dx = y;
  reference::forward({DType::f32, x.data(), y.data(), 40});
  reference::backward({DType::f32, y.data(), dy.data(), dx.data(), 40});
  expect_gradient(loss, x.values(), dx.values(), 1.0 / 128, 1e-5);
}

TEST(Relu, RefusesNullPartialOverlapAndOtherTypes) {
  float data[4] = {};
  EXPECT_THROW(check_args(ForwardArgs{DType::f32, nullptr, data, 1}), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{DType::f32, data, data + 1, 2}), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{DType::i32, data, data, 2}), InvalidArgument);
  EXPECT_THROW(check_args(BackwardArgs{DType::f32, data, nullptr, data, 2}), InvalidArgument);
  EXPECT_THROW(check_args(BackwardArgs{DType::f32, data, data, data + 1, 2}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::relu
