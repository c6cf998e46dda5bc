// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/max_pool2d/max_pool2d.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/safetensors.h"
#include "tests/support/values.h"

namespace gradring::kernels::max_pool2d {
namespace {

using namespace gradring::tests;

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};
constexpr Geometry kCases[] = {
    {.batch = 2, .height = 26, .width = 26, .channels = 32},
    {.batch = 2, .height = 11, .width = 11, .channels = 64},  // the last row and column fill no window
    {.batch = 0, .height = 4, .width = 4, .channels = 3},
    {.batch = 1, .height = 1, .width = 5, .channels = 3},  // no output at all
    {.batch = 3, .height = 5, .width = 4, .channels = 1},
    {.batch = 1, .height = 7, .width = 9, .channels = 33},
    {.batch = 1, .height = 9, .width = 7, .channels = 31, .window = 3, .stride = 2},  // windows overlap
    {.batch = 2, .height = 6, .width = 6, .channels = 5, .window = 2, .stride = 1},
    {.batch = 1, .height = 11, .width = 12, .channels = 4, .window = 2, .stride = 3},  // gaps between windows
    {.batch = 1, .height = 17, .width = 16, .channels = 2, .window = 16, .stride = 1},
    {.batch = 1, .height = 5, .width = 5, .channels = 2, .window = 1, .stride = 1},
    {.batch = 2, .height = 14, .width = 13, .channels = 16, .window = 3, .stride = 2, .padding = 1},  // as in a ResNet
    {.batch = 1, .height = 5, .width = 4, .channels = 33, .window = 2, .stride = 2, .padding = 1},
    {.batch = 1, .height = 2, .width = 1, .channels = 3, .window = 3, .stride = 1, .padding = 1},  // all at the border
    {.batch = 1, .height = 6, .width = 7, .channels = 5, .window = 5, .stride = 3, .padding = 2},
    {.batch = 2, .height = 0, .width = 3, .channels = 5, .window = 2, .stride = 1, .padding = 1},  // padding alone
};

std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

/// Small ones, so that sums over overlapping windows are exact in every type.
std::vector<double> whole_numbers(std::size_t elements) {
  std::vector<double> values = random_values(elements, 2, -2, 2);
  for (double& value : values) value = std::floor(value);
  return values;
}

/// Inputs, and what the reference makes of them.
struct Case {
  TypedArray x, y, dy, dx;
  std::vector<std::uint8_t> codes;

  Case(const Geometry& g, DType dtype)
      : x(dtype, random_values(size(g.in_elements()), 1)),
        y(TypedArray::unwritten(dtype, size(g.out_elements()))),
        dy(dtype, whole_numbers(size(g.out_elements()))),
        dx(TypedArray::unwritten(dtype, size(g.in_elements()))),
        codes(size(g.out_elements()), 0xff) {
    reference_forward({g, dtype, x.data(), y.data(), codes.data()});
    reference_backward({g, dtype, dy.data(), codes.data(), dx.data()});
  }
};

TEST(MaxPool2d, IsExactForwardAndBackward) {
  for (DType dtype : kTypes)
    for (const Geometry& g : kCases) {
      const Case expected(g, dtype);
      for_each_variant(kernel_set().max_pool2d, dtype, [&](const Variant& variant, Stream& stream) {
        TypedArray y = TypedArray::unwritten(dtype, size(g.out_elements()));
        TypedArray y_alone = y;
        TypedArray dx = TypedArray::unwritten(dtype, size(g.in_elements()));
        std::vector<std::uint8_t> codes(size(g.out_elements()), 0xff);
        variant.forward(stream, {g, dtype, expected.x.data(), y.data(), codes.data()});
        variant.forward(stream, {g, dtype, expected.x.data(), y_alone.data(), nullptr});
        variant.backward(stream, {g, dtype, expected.dy.data(), expected.codes.data(), dx.data()});
        finish(stream);
        expect_equal(y.values(), expected.y.values());
        expect_equal(y_alone.values(), expected.y.values());
        EXPECT_EQ(codes, expected.codes);
        expect_equal(dx.values(), expected.dx.values());
      });
    }
}

/// tests/golden/make_pooling.py.
TEST(MaxPool2d, EqualsPyTorch) {
  const StoredTensors golden = read_golden("pooling");
  const Geometry g{.batch = 2, .height = 7, .width = 6, .channels = 5, .window = 3, .stride = 2, .padding = 1};
  const auto tensor = [&](const std::string& name) {
    const std::vector<float> values = golden.at("max." + name).as<float>();
    return TypedArray(DType::f32, std::vector<double>(values.begin(), values.end()));
  };
  const TypedArray x = tensor("x"), y = tensor("y"), dy = tensor("dy"), dx = tensor("dx");
  for_each_variant(kernel_set().max_pool2d, DType::f32, [&](const Variant& variant, Stream& stream) {
    TypedArray actual_y = TypedArray::unwritten(DType::f32, y.elements());
    TypedArray actual_dx = TypedArray::unwritten(DType::f32, dx.elements());
    std::vector<std::uint8_t> codes(y.elements(), 0xff);
    variant.forward(stream, {g, DType::f32, x.data(), actual_y.data(), codes.data()});
    variant.backward(stream, {g, DType::f32, dy.data(), codes.data(), actual_dx.data()});
    finish(stream);
    expect_equal(actual_y.values(), y.values());
    expect_equal(actual_dx.values(), dx.values());
  });
}

TEST(MaxPool2d, PaddingNeverWins) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Geometry g{.batch = 1, .height = 1, .width = 3, .channels = 1, .window = 3, .stride = 2, .padding = 1};
  const TypedArray x(DType::f32, std::vector<double>{-3, -5, -infinity});
  for_each_variant(kernel_set().max_pool2d, DType::f32, [&](const Variant& variant, Stream& stream) {
    TypedArray y = TypedArray::unwritten(DType::f32, 2);
    std::vector<std::uint8_t> codes(2, 0xff);
    variant.forward(stream, {g, DType::f32, x.data(), y.data(), codes.data()});
    finish(stream);
    expect_equal(y.values(), std::vector<double>{-3, -5});
    EXPECT_EQ(codes, (std::vector<std::uint8_t>{4, 3}));
  });
}

TEST(MaxPool2d, TakesTheFirstMaximumAndTheLastNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Geometry g{.batch = 1, .height = 2, .width = 8, .channels = 1};
  const std::vector<double> values = {1, 1, nan, 5, nan, 2,   -1, -2,  //
                                      1, 1, 9,   0, 3,   nan, -2, -1};
  const TypedArray x(DType::f32, values);
  const auto expect_results = [nan](const TypedArray& y, const std::vector<std::uint8_t>& codes) {
    expect_equal(y.values(), std::vector<double>{1, nan, nan, -1});
    EXPECT_EQ(codes, (std::vector<std::uint8_t>{0, 0, 3, 0}));
  };
  TypedArray y = TypedArray::unwritten(DType::f32, 4);
  std::vector<std::uint8_t> codes(4, 0xff);
  reference_forward({g, DType::f32, x.data(), y.data(), codes.data()});
  expect_results(y, codes);
  for_each_variant(kernel_set().max_pool2d, DType::f32, [&](const Variant& variant, Stream& stream) {
    TypedArray actual = TypedArray::unwritten(DType::f32, 4);
    std::vector<std::uint8_t> actual_codes(4, 0xff);
    variant.forward(stream, {g, DType::f32, x.data(), actual.data(), actual_codes.data()});
    finish(stream);
    expect_results(actual, actual_codes);
  });
}

TEST(MaxPool2d, ReferenceGradientMatchesFiniteDifferences) {
  for (const Geometry& g :
       {Geometry{.batch = 2, .height = 5, .width = 4, .channels = 3},
        Geometry{.batch = 1, .height = 7, .width = 7, .channels = 2, .window = 3, .stride = 2},
        Geometry{.batch = 1, .height = 6, .width = 7, .channels = 2, .window = 3, .stride = 2, .padding = 1}}) {
    const TypedArray x(DType::f32, distinct_values(size(g.in_elements()), 3, 1.0 / 64));
    const TypedArray dy(DType::f32, random_values(size(g.out_elements()), 4));
    const std::vector<double> weights = dy.values();
    TypedArray y = TypedArray::unwritten(DType::f32, weights.size());
    std::vector<std::uint8_t> codes(weights.size());
    const auto loss = [&](std::span<const double> at) {
      const TypedArray point(DType::f32, at);
      reference_forward({g, DType::f32, point.data(), y.data(), codes.data()});
      const std::vector<double> values = y.values();
      return std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
    };
    TypedArray dx = TypedArray::unwritten(DType::f32, x.elements());
    loss(x.values());
    reference_backward({g, DType::f32, dy.data(), codes.data(), dx.data()});
    expect_gradient(loss, x.values(), dx.values(), 1.0 / 128, 1e-4);
  }
}

TEST(MaxPool2d, RejectsImpossibleGeometriesNullAndOtherTypes) {
  float data[16] = {};
  std::uint8_t codes[4] = {};
  const Geometry good{.batch = 1, .height = 4, .width = 2, .channels = 1};
  const auto with = [&](auto change) {
    Geometry g = good;
    change(g);
    return ForwardArgs{g, DType::f32, data, data + 8, codes};
  };
  EXPECT_NO_THROW(check_args(with([](Geometry&) {})));
  EXPECT_THROW(check_args(with([](Geometry& g) { g.batch = -1; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.window = 0; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.window = 17; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.stride = 0; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.padding = 2; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.padding = -1; })), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{good, DType::f32, nullptr, data, codes}), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{good, DType::f32, data, data, codes}), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{good, DType::i32, data, data + 8, codes}), InvalidArgument);
  EXPECT_THROW(check_args(BackwardArgs{good, DType::f32, data + 8, nullptr, data}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::max_pool2d
