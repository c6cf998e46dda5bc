// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/activations/activations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/safetensors.h"
#include "tests/support/values.h"

namespace gradring::kernels {
namespace {

using namespace gradring::tests;

constexpr std::size_t kSizes[] = {0, 1, 31, 32, 33, 1023, 20001};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

struct Function {
  std::string name;  // in activations.safetensors
  std::span<const activations::Variant> table;
  void (*reference_forward)(const activations::ForwardArgs&);
  void (*reference_backward)(const activations::BackwardArgs&);
};

std::vector<Function> functions() {
  return {{"gelu", kernel_set().gelu, gelu::reference_forward, gelu::reference_backward},
          {"silu", kernel_set().silu, silu::reference_forward, silu::reference_backward}};
}

/// The contracts' bounds at x, before rounding to the type.
double forward_error(double x) { return 0x1p-21 * std::fabs(x) + 0x1p-126; }
double backward_error(double x, double dy) { return 0x1p-20 * (1 + std::fabs(x)) * std::fabs(dy); }

void expect_within(const TypedArray& actual, const std::vector<double>& expected,
                   const std::function<double(std::size_t)>& error) {
  expect_close(actual.values(), expected, [&](std::size_t i) {
    return error(i) + 2 * rounding(actual.dtype(), std::fabs(expected[i]) + error(i));
  });
}

TEST(Activations, StayWithinTheirBoundsAlsoInPlace) {
  for (const Function& function : functions())
    for (DType dtype : kTypes)
      for (std::size_t n : kSizes) {
        SCOPED_TRACE(function.name + ", " + std::to_string(n));
        const TypedArray x(dtype, random_values(n, 1, -8, 8));
        const TypedArray dy(dtype, random_values(n, 2));
        const std::vector<double> at = x.values(), gradient = dy.values();
        TypedArray y = TypedArray::unwritten(dtype, n);
        TypedArray dx = y;
        function.reference_forward({dtype, x.data(), y.data(), n});
        function.reference_backward({dtype, x.data(), dy.data(), dx.data(), n});
        for_each_variant(function.table, dtype, [&](const activations::Variant& variant, Stream& stream) {
          TypedArray actual_y = TypedArray::unwritten(dtype, n);
          TypedArray actual_dx = actual_y;
          TypedArray in_place_y = x, in_place_dx = dy, over_x = x;
          variant.forward(stream, {dtype, x.data(), actual_y.data(), n});
          variant.forward(stream, {dtype, in_place_y.data(), in_place_y.data(), n});
          variant.backward(stream, {dtype, x.data(), dy.data(), actual_dx.data(), n});
          variant.backward(stream, {dtype, x.data(), in_place_dx.data(), in_place_dx.data(), n});
          variant.backward(stream, {dtype, over_x.data(), dy.data(), over_x.data(), n});
          finish(stream);
          expect_within(actual_y, y.values(), [&](std::size_t i) { return forward_error(at[i]); });
          expect_within(actual_dx, dx.values(), [&](std::size_t i) { return backward_error(at[i], gradient[i]); });
          expect_equal(in_place_y.values(), actual_y.values());
          expect_equal(in_place_dx.values(), actual_dx.values());
          expect_equal(over_x.values(), actual_dx.values());
        });
      }
}

/// tests/golden/make_activations.py: from one tail to the other.
TEST(Activations, EqualPyTorch) {
  const StoredTensors golden = read_golden("activations");
  const TypedArray x(DType::f32, golden.at("x").as<double>());
  const std::vector<double> at = x.values();
  const TypedArray ones(DType::f32, std::vector<double>(at.size(), 1.0));
  for (const Function& function : functions()) {
    SCOPED_TRACE(function.name);
    const std::vector<double> y = golden.at(function.name + ".y").as<double>();
    const std::vector<double> dx = golden.at(function.name + ".dx").as<double>();
    for_each_variant(function.table, DType::f32, [&](const activations::Variant& variant, Stream& stream) {
      TypedArray actual_y = TypedArray::unwritten(DType::f32, at.size());
      TypedArray actual_dx = actual_y;
      variant.forward(stream, {DType::f32, x.data(), actual_y.data(), at.size()});
      variant.backward(stream, {DType::f32, x.data(), ones.data(), actual_dx.data(), at.size()});
      finish(stream);
      // x itself was rounded to f32.
      expect_within(actual_y, y, [&](std::size_t i) { return forward_error(at[i]) + rounding(DType::f32, at[i]); });
      expect_within(actual_dx, dx,
                    [&](std::size_t i) { return backward_error(at[i], 1) + rounding(DType::f32, at[i]); });
    });
  }
}

TEST(Activations, KeepNaNAndPlusInfinity) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Function& function : functions())
    for (DType dtype : kTypes)
      for_each_variant(function.table, dtype, [&](const activations::Variant& variant, Stream& stream) {
        SCOPED_TRACE(function.name);
        const TypedArray x(dtype, std::vector<double>{nan, infinity, 0, -0.0, -infinity});
        TypedArray y = TypedArray::unwritten(dtype, 5);
        variant.forward(stream, {dtype, x.data(), y.data(), 5});
        finish(stream);
        const std::vector<double> values = y.values();
        expect_equal(std::span(values).first(4), std::vector<double>{nan, infinity, 0, 0});
        EXPECT_FALSE(std::isfinite(values[4]));
      });
}

TEST(Activations, ReferenceGradientsMatchFiniteDifferences) {
  for (const Function& function : functions()) {
    SCOPED_TRACE(function.name);
    const TypedArray x(DType::f32, random_values(40, 3, -4, 4));
    const TypedArray dy(DType::f32, random_values(40, 4));
    const std::vector<double> weights = dy.values();
    TypedArray y = TypedArray::unwritten(DType::f32, 40);
    const auto loss = [&](std::span<const double> at) {
      const TypedArray point(DType::f32, at);
      function.reference_forward({DType::f32, point.data(), y.data(), 40});
      const std::vector<double> values = y.values();
      return std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
    };
    TypedArray dx = y;
    function.reference_backward({DType::f32, x.data(), dy.data(), dx.data(), 40});
    expect_gradient(loss, x.values(), dx.values(), 1.0 / 64, 2e-4);
  }
}

TEST(Activations, RejectNullPartialOverlapAndOtherTypes) {
  float data[4] = {};
  EXPECT_THROW(gelu::check_args(activations::ForwardArgs{DType::f32, nullptr, data, 1}), InvalidArgument);
  EXPECT_THROW(gelu::check_args(activations::ForwardArgs{DType::f32, data, data + 1, 2}), InvalidArgument);
  EXPECT_THROW(gelu::check_args(activations::BackwardArgs{DType::i32, data, data, data, 2}), InvalidArgument);
  EXPECT_THROW(silu::check_args(activations::ForwardArgs{DType::i32, data, data, 2}), InvalidArgument);
  EXPECT_THROW(silu::check_args(activations::BackwardArgs{DType::f32, data, nullptr, data, 2}), InvalidArgument);
  EXPECT_THROW(silu::check_args(activations::BackwardArgs{DType::f32, data, data, data + 1, 2}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels
