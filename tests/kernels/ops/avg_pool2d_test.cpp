// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/avg_pool2d/avg_pool2d.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/safetensors.h"
#include "tests/support/values.h"

namespace gradring::kernels::avg_pool2d {
namespace {

using namespace gradring::tests;

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

constexpr Geometry windows(std::int64_t batch, std::int64_t height, std::int64_t width, std::int64_t channels,
                           std::int64_t window_height, std::int64_t window_width, std::int64_t stride,
                           std::int64_t padding = 0, bool count_include_pad = true) {
  return {.batch = batch,
          .height = height,
          .width = width,
          .channels = channels,
          .window_height = window_height,
          .window_width = window_width,
          .stride = stride,
          .padding = padding,
          .count_include_pad = count_include_pad};
}

constexpr Geometry kCases[] = {
    windows(2, 8, 8, 32, 2, 2, 2),
    windows(2, 11, 9, 64, 2, 2, 2),  // the last row and column fill no window
    windows(0, 4, 4, 3, 2, 2, 2),
    windows(1, 1, 5, 3, 2, 2, 2),  // no output at all
    windows(3, 5, 4, 1, 2, 2, 2),
    windows(1, 7, 9, 33, 3, 2, 2),  // windows overlap in one direction
    windows(1, 9, 7, 31, 3, 3, 2, 1),
    windows(2, 6, 5, 24, 3, 3, 1, 1, false),  // the divisor depends on the position
    windows(1, 11, 12, 4, 2, 2, 3),           // gaps between windows
    windows(2, 9, 8, 40, 5, 4, 2, 2),         // large enough for a block each
    windows(1, 6, 6, 5, 4, 4, 1, 2, false),
    Geometry::global(2, 7, 7, 512),
    Geometry::global(3, 4, 4, 72),
    Geometry::global(2, 5, 9, 13),
    Geometry::global(2, 1, 1, 10),
    windows(2, 0, 3, 5, 2, 2, 1, 1),  // padding alone
};

std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

/// Values below 1, of which each result is a mean: the contract's bound.
void expect_means(const TypedArray& actual, const TypedArray& expected, double terms) {
  const std::vector<double> truth = expected.values();
  const double sum_error = (terms + 2) * 0x1p-24;
  expect_close(actual.values(), truth, [&](std::size_t i) {
    return sum_error + 2 * rounding(actual.dtype(), std::fabs(truth[i]) + sum_error);
  });
}

TEST(AvgPool2d, ForwardStaysWithinItsBound) {
  for (DType dtype : kTypes)
    for (const Geometry& g : kCases) {
      const TypedArray x(dtype, random_values(size(g.in_elements()), 1));
      TypedArray expected = TypedArray::unwritten(dtype, size(g.out_elements()));
      reference_forward({g, dtype, x.data(), expected.data()});
      for_each_variant(kernel_set().avg_pool2d, dtype, [&](const Variant& variant, Stream& stream) {
        TypedArray y = TypedArray::unwritten(dtype, size(g.out_elements()));
        variant.forward(stream, {g, dtype, x.data(), y.data()});
        finish(stream);
        expect_means(y, expected, static_cast<double>(g.window_elements()));
      });
    }
}

TEST(AvgPool2d, BackwardStaysWithinItsBound) {
  for (DType dtype : kTypes)
    for (const Geometry& g : kCases) {
      const TypedArray dy(dtype, random_values(size(g.out_elements()), 2));
      TypedArray expected = TypedArray::unwritten(dtype, size(g.in_elements()));
      reference_backward({g, dtype, dy.data(), expected.data()});
      for_each_variant(kernel_set().avg_pool2d, dtype, [&](const Variant& variant, Stream& stream) {
        TypedArray dx = TypedArray::unwritten(dtype, size(g.in_elements()));
        variant.backward(stream, {g, dtype, dy.data(), dx.data()});
        finish(stream);
        expect_means(dx, expected, static_cast<double>(g.window_elements()));
      });
    }
}

TEST(AvgPool2d, TakesArraysThatAreNotAlignedForVectors) {
  const Geometry g = windows(1, 4, 4, 8, 2, 2, 2);
  for (DType dtype : kTypes)
    for_each_variant(kernel_set().avg_pool2d, dtype, [&](const Variant& variant, Stream& stream) {
      const TypedArray values(dtype, random_values(size(g.in_elements()) + 1, 1));
      const char* const x = static_cast<const char*>(values.data()) + size_of(dtype);
      TypedArray expected = TypedArray::unwritten(dtype, size(g.out_elements()));
      reference_forward({g, dtype, x, expected.data()});
      TypedArray y = TypedArray::unwritten(dtype, size(g.out_elements()) + 1);
      char* const second = static_cast<char*>(y.data()) + size_of(dtype);
      variant.forward(stream, {g, dtype, x, second});
      finish(stream);
      const std::vector<double> all = y.values();
      EXPECT_TRUE(std::isnan(all[0])) << "written before its start";
      expect_means(TypedArray(dtype, std::span(all).subspan(1)), expected, 4);
    });
}

/// tests/golden/make_pooling.py.
TEST(AvgPool2d, EqualsPyTorch) {
  const StoredTensors golden = read_golden("pooling");
  const struct {
    std::string name;
    Geometry geometry;
  } cases[] = {{"average", windows(2, 7, 6, 5, 3, 3, 2, 1)},
               {"inside", windows(2, 7, 6, 5, 3, 3, 2, 1, false)},
               {"global", Geometry::global(2, 7, 6, 5)}};
  for (const auto& [name, g] : cases) {
    SCOPED_TRACE(name);
    const auto tensor = [&](const std::string& part) {
      const std::vector<float> values = golden.at(name + "." + part).as<float>();
      return TypedArray(DType::f32, std::vector<double>(values.begin(), values.end()));
    };
    const TypedArray x = tensor("x"), y = tensor("y"), dy = tensor("dy"), dx = tensor("dx");
    for_each_variant(kernel_set().avg_pool2d, DType::f32, [&](const Variant& variant, Stream& stream) {
      TypedArray actual_y = TypedArray::unwritten(DType::f32, y.elements());
      TypedArray actual_dx = TypedArray::unwritten(DType::f32, dx.elements());
      variant.forward(stream, {g, DType::f32, x.data(), actual_y.data()});
      variant.backward(stream, {g, DType::f32, dy.data(), actual_dx.data()});
      finish(stream);
      expect_close(actual_y.values(), y.values(), [](std::size_t) { return 1e-6; });
      expect_close(actual_dx.values(), dx.values(), [](std::size_t) { return 1e-6; });
    });
  }
}

TEST(AvgPool2d, ReferenceGradientMatchesFiniteDifferences) {
  for (const Geometry& g : {windows(2, 5, 4, 3, 2, 2, 2), windows(1, 7, 6, 2, 3, 3, 2, 1),
                            windows(1, 6, 7, 2, 3, 2, 1, 1, false), Geometry::global(2, 3, 4, 3)}) {
    const TypedArray dy(DType::f32, random_values(size(g.out_elements()), 4));
    const std::vector<double> weights = dy.values();
    TypedArray y = TypedArray::unwritten(DType::f32, weights.size());
    const auto loss = [&](std::span<const double> at) {
      const TypedArray point(DType::f32, at);
      reference_forward({g, DType::f32, point.data(), y.data()});
      const std::vector<double> values = y.values();
      return std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
    };
    TypedArray dx = TypedArray::unwritten(DType::f32, size(g.in_elements()));
    reference_backward({g, DType::f32, dy.data(), dx.data()});
    // The loss is linear, so that a long step is exact and loses least to rounding.
    expect_gradient(loss, random_values(size(g.in_elements()), 3), dx.values(), 1, 1e-5);
  }
}

TEST(AvgPool2d, RejectsImpossibleGeometriesNullOverlapAndOtherTypes) {
  float data[16] = {};
  const Geometry good = windows(1, 4, 2, 1, 2, 2, 2);
  const auto with = [&](auto change) {
    Geometry g = good;
    change(g);
    return ForwardArgs{g, DType::f32, data, data + 8};
  };
  EXPECT_NO_THROW(check_args(with([](Geometry&) {})));
  EXPECT_THROW(check_args(with([](Geometry& g) { g.batch = -1; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.window_width = 0; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.stride = 0; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.padding = 2; })), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{good, DType::f32, nullptr, data}), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{good, DType::f32, data, data + 7}), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{good, DType::i32, data, data + 8}), InvalidArgument);
  EXPECT_THROW(check_args(BackwardArgs{good, DType::f32, nullptr, data}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::avg_pool2d
