// SPDX-License-Identifier: Apache-2.0
// Idea: the forward pass stores, in a byte per output, the index of the maximum in its window; the backward pass then
//   needs neither input nor output.
// Mapping: forward: a warp per output row, backward: a warp per input row; along the row from left to right, lanes
//   over the channels. Backward gathers (each dx is written once, from the windows that cover it), so no atomics and no
//   clearing before.
// Traffic and bound: forward reads every input and writes every output once; backward reads outputs and codes once
//   (from the cache again for each element of the window) and writes every input once; bound by memory.
// Still slow because: a warp walks along a whole row, and with few channels most of its lanes rest. Fused into the
//   convolution before it, the input would never be written.

#include "kernels/ops/max_pool2d/max_pool2d.h"

#include "kernels/lib/element.h"
#include "kernels/lib/rows.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::max_pool2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// kWindow 0: any window, known at run time only. A known one is unrolled, and the channel loop around it vectorises.
template <class T, int kWindow>
__global__ void max_pool2d_forward_rows_kernel(SIMT_GRID_CONST(Geometry) g, const T* __restrict__ x, T* __restrict__ y,
                                               std::uint8_t* __restrict__ codes) {
  const int window = kWindow ? kWindow : static_cast<int>(g.window);
  const int channels = static_cast<int>(g.channels);
  const std::int64_t line = g.width * g.channels;  // elements of an input row
  for (std::int64_t row : lib::row_range(g.batch * g.out_height())) {
    const std::int64_t n = row / g.out_height();
    const std::int64_t oh = row - n * g.out_height();
    for (std::int64_t ow = 0; ow < g.out_width(); ++ow) {
      const T* corner = x + (n * g.height + oh * g.stride) * line + ow * g.stride * channels;
      const std::int64_t out = (row * g.out_width() + ow) * channels;
      for (int c : lib::lane_range(channels)) {
        float best = lib::to_f32(corner[c]);
        int code = 0;
        for (int i = 0; i < window; ++i)
          for (int j = 0; j < window; ++j) {
            const float value = lib::to_f32(corner[i * line + j * channels + c]);
            const bool takes = value > best || value != value;  // a NaN takes all, and no number takes it back
            best = takes ? value : best;
            code = takes ? i * window + j : code;
          }
        y[out + c] = lib::from_f32<T>(best);
        if (codes) codes[out + c] = static_cast<std::uint8_t>(code);
      }
    }
  }
}

/// The windows that cover index `at` of one axis: [first, last], empty if last < first.
struct Cover {
  int first, last;
  __device__ Cover(int at, int window, int stride, int windows)
      : first(at < window ? 0 : (at - window) / stride + 1), last(at / stride < windows ? at / stride : windows - 1) {}
};

template <class T>
__global__ void max_pool2d_backward_rows_kernel(SIMT_GRID_CONST(Geometry) g, const T* __restrict__ dy,
                                                const std::uint8_t* __restrict__ codes, T* __restrict__ dx) {
  const int window = static_cast<int>(g.window);
  const int stride = static_cast<int>(g.stride);
  const int channels = static_cast<int>(g.channels);
  const int out_height = static_cast<int>(g.out_height());
  const int out_width = static_cast<int>(g.out_width());
  for (std::int64_t row : lib::row_range(g.batch * g.height)) {
    const std::int64_t n = row / g.height;
    const int ih = static_cast<int>(row - n * g.height);
    const Cover rows(ih, window, stride, out_height);
    for (int iw = 0; iw < g.width; ++iw) {
      const Cover cols(iw, window, stride, out_width);
      T* to = dx + (row * g.width + iw) * channels;
      if (rows.first == rows.last && cols.first == cols.last) {  // one window: a choice, not a sum
        const std::int64_t out = ((n * out_height + rows.first) * out_width + cols.first) * channels;
        const int index = (ih - rows.first * stride) * window + iw - cols.first * stride;
        for (int c : lib::lane_range(channels))
          to[c] = lib::from_f32<T>(codes[out + c] == index ? lib::to_f32(dy[out + c]) : 0.0f);
        continue;
      }
      for (int c : lib::lane_range(channels)) {
        float sum = 0;
        for (int oh = rows.first; oh <= rows.last; ++oh)
          for (int ow = cols.first; ow <= cols.last; ++ow) {
            const std::int64_t out = ((n * out_height + oh) * out_width + ow) * channels + c;
            if (codes[out] == (ih - oh * stride) * window + iw - ow * stride) sum += lib::to_f32(dy[out]);
          }
        to[c] = lib::from_f32<T>(sum);
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
    lib::with_bool(g.window == 2, [&](auto is_two) {
      simt::launch_flat<max_pool2d_forward_rows_kernel<T, is_two.value ? 2 : 0>>(
          stream, lib::rows_for(stream, g.batch * g.out_height(), g.in_elements()), g, static_cast<const T*>(args.x),
          static_cast<T*>(args.y), args.codes);
    });
  });
}

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.in_elements() == 0) return;
  check_limits(g);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<max_pool2d_backward_rows_kernel<T>>(
        stream, lib::rows_for(stream, g.batch * g.height, g.in_elements()), g, static_cast<const T*>(args.dy),
        args.codes, static_cast<T*>(args.dx));
  });
}

}  // namespace

Variant rows() { return {"rows", forward, backward, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::max_pool2d
