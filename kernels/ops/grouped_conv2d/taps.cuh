// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/reference.h"
#include "kernels/ops/grouped_conv2d/grouped_conv2d.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::grouped_conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// Both forward and dgrad are sums over the positions of the kernel ("taps"): along one axis, tap k links position `at`
/// of the result to position source(at, k) of the operand.
struct ForwardAxis {
  int stride, padding, extent;  // of the operand

  /// -1: outside.
  __device__ int source(int at, int k) const {
    const int from = at * stride + k - padding;
    return from >= 0 && from < extent ? from : -1;
  }
};

struct DgradAxis {
  int stride, padding, extent;

  __device__ int source(int at, int k) const {
    const int from = at + padding - k;
    if (from < 0) return -1;
    const int steps = from / stride;
    return steps * stride == from && steps < extent ? steps : -1;
  }
};

/// A pass of a depthwise convolution: from an operand to a result of as many channels.
template <class Axis>
struct DepthwisePass {
  std::int64_t batch;
  int channels, kernel_height, kernel_width;
  int height, width;  // of the result
  int operand_height, operand_width;
  Axis rows, cols;

  __device__ int taps() const { return kernel_height * kernel_width; }
  __host__ __device__ std::int64_t positions() const { return batch * height * width; }
};

inline DepthwisePass<ForwardAxis> forward_pass(const Geometry& g) {
  const auto fit = [](const char* what, std::int64_t value) { return lib::narrow<int>("grouped_conv2d", what, value); };
  fit("in_height + padding", g.in_height + g.padding);
  fit("(in_width + padding) * in_channels", (g.in_width + g.padding) * g.in_channels);
  fit("batch * out_height * out_width", g.batch * g.out_height() * g.out_width());
  const int stride = fit("stride", g.stride);
  const int padding = static_cast<int>(g.padding);
  return {.batch = g.batch,
          .channels = static_cast<int>(g.in_channels),
          .kernel_height = fit("kernel_height", g.kernel_height),
          .kernel_width = fit("kernel_width", g.kernel_width),
          .height = static_cast<int>(g.out_height()),
          .width = static_cast<int>(g.out_width()),
          .operand_height = static_cast<int>(g.in_height),
          .operand_width = static_cast<int>(g.in_width),
          .rows = {stride, padding, static_cast<int>(g.in_height)},
          .cols = {stride, padding, static_cast<int>(g.in_width)}};
}

inline DepthwisePass<DgradAxis> dgrad_pass(const Geometry& g) {
  const DepthwisePass<ForwardAxis> forward = forward_pass(g);
  lib::narrow<int>("grouped_conv2d", "batch * in_height * in_width", g.batch * g.in_height * g.in_width);
  return {.batch = g.batch,
          .channels = forward.channels,
          .kernel_height = forward.kernel_height,
          .kernel_width = forward.kernel_width,
          .height = forward.operand_height,
          .width = forward.operand_width,
          .operand_height = forward.height,
          .operand_width = forward.width,
          .rows = {forward.rows.stride, forward.rows.padding, forward.height},
          .cols = {forward.cols.stride, forward.cols.padding, forward.width}};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::grouped_conv2d
