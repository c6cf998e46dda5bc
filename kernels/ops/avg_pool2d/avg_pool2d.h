// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/lib/variant.h"

namespace gradring::kernels::avg_pool2d {

/// Sizes of an average pooling with zero padding; at the far edges, what fills no window is left out.
struct Geometry {
  std::int64_t batch = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  std::int64_t window_height = 2;
  std::int64_t window_width = 2;
  std::int64_t stride = 2;
  std::int64_t padding = 0;       ///< rows and columns of zeros on each side; at most half of the window
  bool count_include_pad = true;  ///< the divisor counts every position of a window; else those that hold inputs

  /// One window for each image: global pooling.
  static constexpr Geometry global(std::int64_t batch, std::int64_t height, std::int64_t width, std::int64_t channels) {
    return {.batch = batch,
            .height = height,
            .width = width,
            .channels = channels,
            .window_height = height,
            .window_width = width,
            .stride = 1};
  }

  constexpr std::int64_t out_height() const { return out_extent(height, window_height); }
  constexpr std::int64_t out_width() const { return out_extent(width, window_width); }
  constexpr std::int64_t in_elements() const { return batch * height * width * channels; }
  constexpr std::int64_t out_elements() const { return batch * out_height() * out_width() * channels; }
  constexpr std::int64_t window_elements() const { return window_height * window_width; }

 private:
  constexpr std::int64_t out_extent(std::int64_t in, std::int64_t window) const {
    const std::int64_t slack = in + 2 * padding - window;
    return in == 0 || slack < 0 ? 0 : slack / stride + 1;
  }
};

/// The mean of each window:
///   y[n,oh,ow,c] = 1/d * sum_{i,j} x[n, oh*stride + i - padding, ow*stride + j - padding, c]
/// d = window_height * window_width; without count_include_pad, the number of inputs in the window.
///
/// Shapes    x: [batch, height, width, channels]; y: [batch, out_height, out_width, channels]; NHWC, contiguous.
/// Types     f32, f16 or bf16, equal for x and y; sums in f32.
/// Aliasing  nothing overlaps.
/// Order     enqueued on the stream; returns at once. No elements: nothing happens.
/// Errors    InvalidArgument if an extent is negative, a window extent or the stride is below 1, the padding is
///           negative or more than half of a window extent, a pointer is null, or the type none of the three.
/// Numerics  deterministic; error below (window_elements + 2) * 2^-24 * (1/d * sum |x|), and one rounding to the type.
/// Cost      reads in_elements, writes out_elements; window_elements additions for each output.
/// Source    torch.nn.AvgPool2d, without ceil_mode and divisor_override.
/// Example   tests/kernels/ops/avg_pool2d_test.cpp
struct ForwardArgs {
  Geometry geometry;
  DType dtype = DType::f32;
  const void* x = nullptr;
  void* y = nullptr;
};

/// Its gradient: dx[n,ih,iw,c] = sum of dy / d over the windows that hold the input; dx is overwritten.
///
/// Types     f32, f16 or bf16, equal for dy and dx; sums over overlapping windows in f32.
/// Numerics  deterministic; error below (windows + 2) * 2^-24 * (sum |dy / d|), and one rounding.
/// Cost      reads out_elements, writes in_elements.
/// The rest  as for ForwardArgs.
struct BackwardArgs {
  Geometry geometry;
  DType dtype = DType::f32;
  const void* dy = nullptr;
  void* dx = nullptr;
};

void check_args(const ForwardArgs& args);
void check_args(const BackwardArgs& args);
void reference_forward(const ForwardArgs& args);
void reference_backward(const BackwardArgs& args);

struct Variant {
  std::string_view name;
  void (*forward)(Stream&, const ForwardArgs&);
  void (*backward)(Stream&, const BackwardArgs&);
  bool (*supports)(const Device&, DType);  ///< where it is chosen
  bool (*computes)(DType) = nullptr;       ///< what it is right for on any device, if that is more
};

}  // namespace gradring::kernels::avg_pool2d
