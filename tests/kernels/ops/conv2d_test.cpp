// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/conv2d/conv2d.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/each_stream.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::conv2d {
namespace {

using namespace gradring::tests;

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};
constexpr Geometry kCases[] = {
    // the ConvNet's own two, the first of a smaller image
    {.batch = 1,
     .in_height = 14,
     .in_width = 14,
     .in_channels = 1,
     .out_channels = 32,
     .kernel_height = 3,
     .kernel_width = 3},
    {.batch = 1,
     .in_height = 13,
     .in_width = 13,
     .in_channels = 32,
     .out_channels = 64,
     .kernel_height = 3,
     .kernel_width = 3},
    {.batch = 0,
     .in_height = 5,
     .in_width = 5,
     .in_channels = 2,
     .out_channels = 3,
     .kernel_height = 3,
     .kernel_width = 3},
    {.batch = 1,
     .in_height = 1,
     .in_width = 1,
     .in_channels = 1,
     .out_channels = 1,
     .kernel_height = 1,
     .kernel_width = 1},
    {.batch = 2,
     .in_height = 2,
     .in_width = 2,
     .in_channels = 1,
     .out_channels = 1,
     .kernel_height = 3,
     .kernel_width = 3},  // no output
    {.batch = 2,
     .in_height = 5,
     .in_width = 4,
     .in_channels = 31,
     .out_channels = 33,
     .kernel_height = 3,
     .kernel_width = 2},
    {.batch = 1,
     .in_height = 6,
     .in_width = 7,
     .in_channels = 33,
     .out_channels = 31,
     .kernel_height = 1,
     .kernel_width = 3,
     .padding = 1},
    {.batch = 2,
     .in_height = 8,
     .in_width = 7,
     .in_channels = 5,
     .out_channels = 9,
     .kernel_height = 3,
     .kernel_width = 3,
     .stride = 2,
     .padding = 1},
    {.batch = 1,
     .in_height = 9,
     .in_width = 9,
     .in_channels = 8,
     .out_channels = 8,
     .kernel_height = 2,
     .kernel_width = 2,
     .stride = 3},  // gaps
    {.batch = 2,
     .in_height = 7,
     .in_width = 6,
     .in_channels = 16,
     .out_channels = 72,
     .kernel_height = 3,
     .kernel_width = 3,
     .stride = 2,
     .padding = 1},  // wide runs beside padding, more than one tile of columns
    {.batch = 1,
     .in_height = 3,
     .in_width = 3,
     .in_channels = 2,
     .out_channels = 2,
     .kernel_height = 5,
     .kernel_width = 5,
     .padding = 4},  // some outputs see padding only
    {.batch = 1,
     .in_height = 4,
     .in_width = 4,
     .in_channels = 0,
     .out_channels = 2,
     .kernel_height = 3,
     .kernel_width = 3},  // an empty sum
};

/// bf16 differs from f16 in how it is multiplied and rounded, and not in how it is moved: the first cases show that.
std::span<const Geometry> cases_for(DType dtype) {
  return std::span(kCases).first(dtype == DType::bf16 ? 7 : std::size(kCases));
}

std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

/// Inputs in [-1, 1), what the reference makes of them, and how far a variant may be from that.
struct Case {
  Geometry g;
  DType dtype;
  TypedArray x, w, dy, y, dx, dw;

  Case(const Geometry& geometry, DType type)
      : g(geometry),
        dtype(type),
        x(type, random_values(size(g.in_elements()), 1)),
        w(type, random_values(size(g.weight_elements()), 2)),
        dy(type, random_values(size(g.out_elements()), 3)),
        y(TypedArray::unwritten(type, dy.elements())),
        dx(TypedArray::unwritten(type, x.elements())),
        dw(DType::f32, random_values(w.elements(), 4)) {
    reference_forward({g, dtype, x.data(), w.data(), y.data()});
    reference_dgrad({g, dtype, dy.data(), w.data(), dx.data()});
  }

  /// `terms` products of numbers below 1, added up in f32, and one rounding to the type.
  void expect_sums(const TypedArray& actual, const TypedArray& expected, std::int64_t terms) const {
    const std::vector<double> truth = expected.values();
    const double sum_error = static_cast<double>((terms + 1) * (terms + 1)) * 0x1p-24;
    expect_close(actual.values(), truth, [&](std::size_t i) {
      return sum_error + 2 * rounding(actual.dtype(), std::fabs(truth[i]) + sum_error);
    });
  }
};

TEST(Conv2d, ForwardStaysWithinItsBound) {
  for (DType dtype : kTypes)
    for (const Geometry& g : cases_for(dtype)) {
      const Case c(g, dtype);
      for_each_variant(kernel_set().conv2d, dtype, [&](const Variant& variant, Stream& stream) {
        TypedArray y = TypedArray::unwritten(dtype, c.y.elements());
        variant.forward(stream, {g, dtype, c.x.data(), c.w.data(), y.data()});
        finish(stream);
        c.expect_sums(y, c.y, g.filter_elements());
      });
    }
}

TEST(Conv2d, DgradStaysWithinItsBound) {
  for (DType dtype : kTypes)
    for (const Geometry& g : cases_for(dtype)) {
      const Case c(g, dtype);
      for_each_variant(kernel_set().conv2d, dtype, [&](const Variant& variant, Stream& stream) {
        TypedArray dx = TypedArray::unwritten(dtype, c.dx.elements());
        variant.dgrad(stream, {g, dtype, c.dy.data(), c.w.data(), dx.data()});
        finish(stream);
        c.expect_sums(dx, c.dx, g.kernel_height * g.kernel_width * g.out_channels);
      });
    }
}

TEST(Conv2d, WgradStaysWithinItsBound) {
  for (DType dtype : kTypes)
    for (const Geometry& g : cases_for(dtype))
      for (bool accumulate : {false, true}) {
        if (dtype == (accumulate ? DType::f16 : DType::bf16)) continue;  // f32 both ways, the others one way each
        const Case c(g, dtype);
        TypedArray expected = c.dw;
        reference_wgrad({g, dtype, c.x.data(), c.dy.data(), expected.as<float>(), accumulate});
        for_each_variant(kernel_set().conv2d, dtype, [&](const Variant& variant, Stream& stream) {
          TypedArray dw = c.dw;
          TypedArray workspace = TypedArray::unwritten(DType::f32, variant.workspace_bytes(g) / sizeof(float));
          variant.wgrad(stream, {g, dtype, c.x.data(), c.dy.data(), dw.as<float>(), accumulate, workspace.as<float>()});
          finish(stream);
          c.expect_sums(dw, expected, g.batch * g.out_height() * g.out_width());
        });
      }
}

TEST(Conv2d, ASmallerBatchNeedsNoLargerWorkspace) {
  for (const Variant& variant : kernel_set().conv2d)
    for (Geometry g : kCases) {
      std::size_t before = 0;
      for (g.batch = 0; g.batch < 200; g.batch += 1 + g.batch / 8) {
        const std::size_t bytes = variant.workspace_bytes(g);
        EXPECT_GE(bytes, before) << variant.name << ", batch " << g.batch;
        before = bytes;
      }
    }
}

TEST(Conv2d, ReferenceGradientsMatchFiniteDifferences) {
  for (const Geometry& g : {Geometry{.batch = 2,
                           .in_height = 6,
                           .in_width = 5,
                           .in_channels = 2,
                           .out_channels = 3,
                           .kernel_height = 3,
                           .kernel_width = 2},
                            Geometry{.batch = 1,
                            .in_height = 7,
                            .in_width = 6,
                            .in_channels = 3,
                            .out_channels = 2,
                            .kernel_height = 3,
                            .kernel_width = 3,
                            .stride = 2,
                            .padding = 1}}) {
    const Case c(g, DType::f32);
    TypedArray dw = TypedArray::unwritten(DType::f32, c.w.elements());
    reference_wgrad({g, DType::f32, c.x.data(), c.dy.data(), dw.as<float>(), false});
    const std::vector<double> weights = c.dy.values();
    const auto loss = [&](const TypedArray& x, const TypedArray& w) {
      TypedArray y = TypedArray::unwritten(DType::f32, weights.size());
      reference_forward({g, DType::f32, x.data(), w.data(), y.data()});
      const std::vector<double> values = y.values();
      return std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
    };
    // The loss is linear in each argument, so that a long step is exact and loses least to rounding.
    expect_gradient([&](std::span<const double> x) { return loss(TypedArray(DType::f32, x), c.w); }, c.x.values(),
                    c.dx.values(), 1, 1e-5);
    expect_gradient([&](std::span<const double> w) { return loss(c.x, TypedArray(DType::f32, w)); }, c.w.values(),
                    dw.values(), 1, 1e-5);
  }
}

TEST(Conv2d, RejectsImpossibleGeometriesNullOverlapAndOtherTypes) {
  std::vector<float> data(64);
  float* x = data.data();
  const Geometry good{.batch = 1,
                      .in_height = 4,
                      .in_width = 4,
                      .in_channels = 1,
                      .out_channels = 1,
                      .kernel_height = 3,
                      .kernel_width = 3};
  const auto with = [&](auto change) {
    Geometry g = good;
    change(g);
    return ForwardArgs{g, DType::f32, x, x + 16, x + 32};
  };
  EXPECT_NO_THROW(check_args(with([](Geometry&) {})));
  EXPECT_THROW(check_args(with([](Geometry& g) { g.batch = -1; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.kernel_width = 0; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.stride = 0; })), InvalidArgument);
  EXPECT_THROW(check_args(with([](Geometry& g) { g.padding = -1; })), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{good, DType::f32, nullptr, x + 16, x + 32}), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{good, DType::f32, x, x + 16, x + 15}), InvalidArgument);
  EXPECT_THROW(check_args(ForwardArgs{good, DType::i64, x, x + 16, x + 32}), InvalidArgument);
  EXPECT_THROW(check_args(DgradArgs{good, DType::f32, x, nullptr, x + 32}), InvalidArgument);
  EXPECT_THROW(check_args(WgradArgs{good, DType::f32, x, x + 32, nullptr, false}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels::conv2d
