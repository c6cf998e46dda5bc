// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/ops/conv2d/conv2d.h"
#include "tests/support/expect_close.h"
#include "tests/support/values.h"

/// Geometries and their data, for the tests of convolutions.
namespace gradring::kernels::conv2d {

inline constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};
constexpr Geometry geometry(std::int64_t batch, std::int64_t height, std::int64_t width, std::int64_t in,
                            std::int64_t out, std::int64_t groups, std::int64_t kernel_height,
                            std::int64_t kernel_width, std::int64_t stride = 1, std::int64_t padding = 0) {
  return {.batch = batch,
          .in_height = height,
          .in_width = width,
          .in_channels = in,
          .out_channels = out,
          .kernel_height = kernel_height,
          .kernel_width = kernel_width,
          .stride = stride,
          .padding = padding,
          .groups = groups};
}

constexpr Geometry depthwise(std::int64_t batch, std::int64_t height, std::int64_t width, std::int64_t channels,
                             std::int64_t kernel_height, std::int64_t kernel_width, std::int64_t stride = 1,
                             std::int64_t padding = 0) {
  return geometry(batch, height, width, channels, channels, channels, kernel_height, kernel_width, stride, padding);
}

constexpr Geometry dense(std::int64_t batch, std::int64_t height, std::int64_t width, std::int64_t in, std::int64_t out,
                         std::int64_t kernel_height, std::int64_t kernel_width, std::int64_t stride = 1,
                         std::int64_t padding = 0) {
  return geometry(batch, height, width, in, out, 1, kernel_height, kernel_width, stride, padding);
}

inline std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

/// Inputs in [-1, 1), what the reference makes of them, and how far a variant may be from that.
struct Case {
  Geometry g;
  DType dtype;
  tests::TypedArray x, w, dy, y, dx, dw;

  Case(const Geometry& geometry, DType type)
      : g(geometry),
        dtype(type),
        x(type, tests::random_values(size(g.in_elements()), 1)),
        w(type, tests::random_values(size(g.weight_elements()), 2)),
        dy(type, tests::random_values(size(g.out_elements()), 3)),
        y(tests::TypedArray::unwritten(type, dy.elements())),
        dx(tests::TypedArray::unwritten(type, x.elements())),
        dw(DType::f32, tests::random_values(w.elements(), 4)) {
    reference_forward({g, dtype, x.data(), w.data(), y.data()});
    reference_dgrad({g, dtype, dy.data(), w.data(), dx.data()});
  }

  /// `terms` products of numbers below 1, added up in f32, and one rounding to the type.
  void expect_sums(const tests::TypedArray& actual, const tests::TypedArray& expected, std::int64_t terms) const {
    const std::vector<double> truth = expected.values();
    const double sum_error = static_cast<double>((terms + 1) * (terms + 1)) * 0x1p-24;
    tests::expect_close(actual.values(), truth, [&](std::size_t i) {
      return sum_error + 2 * tests::rounding(actual.dtype(), std::fabs(truth[i]) + sum_error);
    });
  }
};

}  // namespace gradring::kernels::conv2d
