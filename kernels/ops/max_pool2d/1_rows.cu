// SPDX-License-Identifier: Apache-2.0
// Idea: the forward pass stores, in a byte per output, the index of the maximum in its window; the backward pass then
//   needs neither input nor output.
// Mapping: forward: a warp per output row, backward: a warp per input row; along the row from left to right, lanes
//   over the channels. Backward gathers (each dx is written once, from the windows that cover it), so no atomics and no
//   clearing before. Padding only makes windows smaller, and has instances of its own.
// Traffic and bound: forward reads every input and writes every output once; backward reads outputs and codes once
//   (from the cache again for each element of the window) and writes every input once; bound by memory.
// Still slow because: a warp walks along a whole row, and with few channels most of its lanes rest. Fused into the
//   convolution before it, the input would never be written.

#include "kernels/ops/max_pool2d/max_pool2d.h"

#include <type_traits>

#include "kernels/lib/element.h"
#include "kernels/lib/register_sums.h"
#include "kernels/lib/rows.h"
#include "kernels/lib/windows.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::max_pool2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// One window, for all channels. kWindow: a whole one of this size, whose loops are unrolled, and the channel loop around
/// them vectorises; 0: any, known at run time only. `corner` is at the window's first channel, `out` the output's.
template <int kWindow, class T>
__device__ inline void pool_window(const T* __restrict__ corner, std::int64_t line, int channels, int any_window,
                                   const lib::InsideWindow& rows, const lib::InsideWindow& cols, T* __restrict__ y,
                                   std::uint8_t* __restrict__ codes, std::int64_t out) {
  const int window = kWindow ? kWindow : any_window;
  const int top = kWindow ? 0 : rows.first, bottom = kWindow ? kWindow : rows.end;
  const int left = kWindow ? 0 : cols.first, right = kWindow ? kWindow : cols.end;
  for (int c : lib::lane_range(channels)) {
    float best = lib::to_f32(corner[top * line + left * channels + c]);
    int code = top * window + left;
    for (int i = top; i < bottom; ++i)
      for (int j = left; j < right; ++j) {
        const float value = lib::to_f32(corner[i * line + j * channels + c]);
        const bool takes = value > best || value != value;  // a NaN takes all, and no number takes it back
        best = takes ? value : best;
        code = takes ? i * window + j : code;
      }
    y[out + c] = lib::from_f32<T>(best);
    if (codes) codes[out + c] = static_cast<std::uint8_t>(code);
  }
}

template <class T, int kWindow, bool kPads>
__global__ void max_pool2d_forward_rows_kernel(SIMT_GRID_CONST(Geometry) g, const T* __restrict__ x, T* __restrict__ y,
                                               std::uint8_t* __restrict__ codes) {
  const int window = kWindow ? kWindow : static_cast<int>(g.window);
  const int channels = static_cast<int>(g.channels);
  const std::int64_t line = g.width * g.channels;  // elements of an input row
  const std::int64_t padding = kPads ? g.padding : 0;
  for (std::int64_t row : lib::row_range(g.batch * g.out_height())) {
    const std::int64_t n = row / g.out_height();
    const std::int64_t oh = row - n * g.out_height();
    for (std::int64_t ow = 0; ow < g.out_width(); ++ow) {
      const T* corner = x + (n * g.height + oh * g.stride - padding) * line + (ow * g.stride - padding) * channels;
      const lib::InsideWindow rows(kPads ? oh * g.stride - padding : 0, window, kPads ? g.height : window);
      const lib::InsideWindow cols(kPads ? ow * g.stride - padding : 0, window, kPads ? g.width : window);
      const std::int64_t out = (row * g.out_width() + ow) * channels;
      if (!kPads || (rows.count() == window && cols.count() == window))
        pool_window<kWindow>(corner, line, channels, window, rows, cols, y, codes, out);
      else
        pool_window<0>(corner, line, channels, window, rows, cols, y, codes, out);
    }
  }
}

/// Channels that a thread sums at once where windows overlap: on a CPU a loop that is vector code.
constexpr int kStrip = lib::kCopyKind == DeviceKind::cpu ? 16 : 1;

template <class T, bool kPads>
__global__ void max_pool2d_backward_rows_kernel(SIMT_GRID_CONST(Geometry) g, const T* __restrict__ dy,
                                                const std::uint8_t* __restrict__ codes, T* __restrict__ dx) {
  const int window = static_cast<int>(g.window);
  const int stride = static_cast<int>(g.stride);
  const int padding = kPads ? static_cast<int>(g.padding) : 0;
  const int channels = static_cast<int>(g.channels);
  const int out_height = static_cast<int>(g.out_height());
  const int out_width = static_cast<int>(g.out_width());
  for (std::int64_t row : lib::row_range(g.batch * g.height)) {
    const std::int64_t n = row / g.height;
    const int ih = static_cast<int>(row - n * g.height) + padding;
    const lib::CoveringWindows rows(ih, window, stride, out_height);
    for (int column = 0; column < g.width; ++column) {
      const int iw = column + padding;
      const lib::CoveringWindows cols(iw, window, stride, out_width);
      T* to = dx + (row * g.width + column) * channels;
      if (rows.first == rows.last && cols.first == cols.last) {  // one window: a choice, not a sum
        const std::int64_t out = ((n * out_height + rows.first) * out_width + cols.first) * channels;
        const int index = (ih - rows.first * stride) * window + iw - cols.first * stride;
        for (int c : lib::lane_range(channels))
          to[c] = lib::from_f32<T>(codes[out + c] == index ? lib::to_f32(dy[out + c]) : 0.0f);
        continue;
      }
      for (int strip : lib::lane_range(lib::strips(channels, kStrip))) {
        const int first = strip * kStrip;
        const int width = lib::strip_width(channels, strip, kStrip);
        float sums[kStrip] = {};
        for (int oh = rows.first; oh <= rows.last; ++oh)
          for (int ow = cols.first; ow <= cols.last; ++ow) {
            const std::int64_t out = ((n * out_height + oh) * out_width + ow) * channels + first;
            const int index = (ih - oh * stride) * window + iw - ow * stride;
            for (int c = 0; c < width; ++c) sums[c] += codes[out + c] == index ? lib::to_f32(dy[out + c]) : 0.0f;
          }
        for (int c = 0; c < width; ++c) to[first + c] = lib::from_f32<T>(sums[c]);
      }
    }
  }
}

/// The kernels count within an image in int.
void check_limits(const Geometry& g) {
  lib::narrow<int>("max_pool2d", "height", g.height);
  lib::narrow<int>("max_pool2d", "width * channels", g.width * g.channels);
  lib::narrow<int>("max_pool2d", "stride", g.stride);
}

void forward(Stream& stream, const ForwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.out_elements() == 0) return;
  check_limits(g);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const auto launch = [&](auto window, auto pads) {
      simt::launch_flat<max_pool2d_forward_rows_kernel<T, window.value, pads.value>>(
          stream, lib::rows_for(stream, g.batch * g.out_height(), g.in_elements()), g, static_cast<const T*>(args.x),
          static_cast<T*>(args.y), args.codes);
    };
    lib::with_bool(g.padding > 0, [&](auto pads) {
      if (g.window == 2) return launch(std::integral_constant<int, 2>(), pads);
      if (g.window == 3) return launch(std::integral_constant<int, 3>(), pads);
      launch(std::integral_constant<int, 0>(), pads);
    });
  });
}

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.in_elements() == 0) return;
  check_limits(g);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    lib::with_bool(g.padding > 0, [&](auto pads) {
      simt::launch_flat<max_pool2d_backward_rows_kernel<T, pads.value>>(
          stream, lib::rows_for(stream, g.batch * g.height, g.in_elements()), g, static_cast<const T*>(args.dy),
          args.codes, static_cast<T*>(args.dx));
    });
  });
}

}  // namespace

Variant rows() { return {"rows", forward, backward, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::max_pool2d
