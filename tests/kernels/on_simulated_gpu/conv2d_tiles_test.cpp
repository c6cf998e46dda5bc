// SPDX-License-Identifier: Apache-2.0
// The tiles from which convolutions choose by how many there are for each multiprocessor: shapes that are so large are
// for a simulated GPU alone, as the execution model of the CPU takes a minute for them.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/ops/kernel_set.h"
#include "tests/kernels/ops/conv2d_cases.h"
#include "tests/support/each_stream.h"
#include "tests/support/kernel_variants.h"

namespace gradring::kernels::conv2d {
namespace {

using namespace gradring::tests;

/// So many channels of y, and so many positions, that C is as many tiles as fill an H100.
struct Result {
  std::int64_t height, width, channels;
};
constexpr std::int64_t kSummed = 8;  // channels

std::vector<Result> results(DType dtype) {
  if (dtype == DType::f32) return {{132, 128, 64}, {96, 88, 64}, {120, 104, 32}};  // 128 x 64, 64 x 64, 96 x 32
  return {{132, 128, 64}, {60, 58, 520}};                                          // 128 x 64, 128 x 128
}

/// Variants that have tiles: those that GPUs alone choose.
template <class Body>
void for_each_tiled_variant(DType dtype, Body body) {
  for_each_variant(kernel_set().conv2d, dtype, [&](const Variant& variant, Stream& stream) {
    if (variant.computes) body(variant, stream);
  });
}

TEST(Conv2dTiles, ForwardStaysWithinItsBound) {
  for (const DType dtype : kTypes)
    for (const Result& result : results(dtype)) {
      const Geometry g = dense(1, result.height, result.width, kSummed, result.channels, 1, 1);
      const Case c(g, dtype);
      for_each_tiled_variant(dtype, [&](const Variant& variant, Stream& stream) {
        TypedArray y = TypedArray::unwritten(dtype, c.y.elements());
        variant.forward(stream, {g, dtype, c.x.data(), c.w.data(), y.data()});
        finish(stream);
        c.expect_sums(y, c.y, g.filter_elements());
      });
    }
}

TEST(Conv2dTiles, DgradStaysWithinItsBound) {
  for (const DType dtype : kTypes)
    for (const Result& result : results(dtype)) {
      const Geometry g = dense(1, result.height, result.width, result.channels, kSummed, 1, 1);
      const Case c(g, dtype);
      for_each_tiled_variant(dtype, [&](const Variant& variant, Stream& stream) {
        TypedArray dx = TypedArray::unwritten(dtype, c.dx.elements());
        variant.dgrad(stream, {g, dtype, c.dy.data(), c.w.data(), dx.data()});
        finish(stream);
        c.expect_sums(dx, c.dx, g.taps() * g.out_channels);
      });
    }
}

TEST(Conv2dTiles, WgradStaysWithinItsBound) {
  for (const DType dtype : kTypes)
    for (const auto& [inputs, filters] : {std::pair(72, 72), std::pair(72, 64), std::pair(64, 72)}) {
      const Geometry g = dense(1, 5, 5, inputs, filters, 1, 1);
      const Case c(g, dtype);
      TypedArray expected = c.dw;
      reference_wgrad({g, dtype, c.x.data(), c.dy.data(), expected.as<float>(), false});
      for_each_tiled_variant(dtype, [&](const Variant& variant, Stream& stream) {
        TypedArray dw = TypedArray::unwritten(DType::f32, c.dw.elements());
        TypedArray workspace = TypedArray::unwritten(DType::f32, variant.workspace_bytes(g) / sizeof(float));
        variant.wgrad(stream, {g, dtype, c.x.data(), c.dy.data(), dw.as<float>(), false, workspace.as<float>()});
        finish(stream);
        c.expect_sums(dw, expected, g.batch * g.out_height() * g.out_width());
      });
    }
}

/// More positions than all blocks of 4_short_filters_*.cu stage at once.
TEST(Conv2dShortFilters, StayWithinTheirBoundsForLargeBatches) {
  const DType dtype = DType::f16;
  const Geometry g = dense(5, 124, 117, 1, 16, 3, 3, 1, 1);
  const Case c(g, dtype);
  TypedArray expected = c.dw;
  reference_wgrad({g, dtype, c.x.data(), c.dy.data(), expected.as<float>(), false});
  for_each_tiled_variant(dtype, [&](const Variant& variant, Stream& stream) {
    TypedArray y = TypedArray::unwritten(dtype, c.y.elements());
    TypedArray dw = TypedArray::unwritten(DType::f32, c.dw.elements());
    TypedArray workspace = TypedArray::unwritten(DType::f32, variant.workspace_bytes(g) / sizeof(float));
    variant.forward(stream, {g, dtype, c.x.data(), c.w.data(), y.data()});
    variant.wgrad(stream, {g, dtype, c.x.data(), c.dy.data(), dw.as<float>(), false, workspace.as<float>()});
    finish(stream);
    c.expect_sums(y, c.y, g.filter_elements());
    c.expect_sums(dw, expected, g.batch * g.out_height() * g.out_width());
  });
}

}  // namespace
}  // namespace gradring::kernels::conv2d
