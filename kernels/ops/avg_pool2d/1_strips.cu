// SPDX-License-Identifier: Apache-2.0
// Idea: a thread keeps the sums of 16 neighbouring channels in registers, and walks over the window. Padding adds
//   nothing, so windows at the border are only smaller. Backward gathers: each dx is the sum over the windows that hold
//   it, and is written once.
// Mapping: forward: a warp per output row, backward: a warp per input row; along the row from left to right, lanes over
//   strips of 16 channels.
// Traffic and bound: forward reads every input once where windows do not overlap, backward every output once (from the
//   cache again for each input of the window); bound by memory.
// Still slow because: a lane reads its 16 channels one by one, each from a sector of its own; with few channels most
//   lanes rest, and global pooling has one warp per image.

#include <type_traits>

#include "kernels/lib/element.h"
#include "kernels/lib/register_sums.h"
#include "kernels/lib/rows.h"
#include "kernels/lib/windows.h"
#include "kernels/ops/avg_pool2d/avg_pool2d.h"
#include "kernels/ops/avg_pool2d/windows.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::avg_pool2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kStrip = 16;

template <class T>
__global__ void avg_pool2d_forward_strips_kernel(SIMT_GRID_CONST(Sizes) s, const T* __restrict__ x, T* __restrict__ y) {
  for (std::int64_t row : lib::row_range(s.out_rows())) {
    const std::int64_t n = row / s.out_height;
    const lib::InsideWindow rows = s.rows_of(static_cast<int>(row - n * s.out_height));
    const T* top = x + (n * s.height + s.top_of(static_cast<int>(row - n * s.out_height))) * s.line();
    for (int ow = 0; ow < s.out_width; ++ow) {
      const lib::InsideWindow cols = s.cols_of(ow);
      const T* corner = top + s.left_of(ow) * s.channels;
      const float weight = s.weight(rows, cols);
      for (int strip : lib::lane_range(lib::strips(s.channels, kStrip))) {
        const int first = strip * kStrip;
        const int width = lib::strip_width(s.channels, strip, kStrip);
        lib::Strip<kStrip> sums;
        for (int i = rows.first; i < rows.end; ++i)
          for (int j = cols.first; j < cols.end; ++j) sums.add(corner + i * s.line() + j * s.channels + first, width);
        T* to = y + (row * s.out_width + ow) * s.channels + first;
        sums.for_each(width, [&](int c, float sum) { to[c] = lib::from_f32<T>(sum * weight); });
      }
    }
  }
}

template <class T>
__global__ void avg_pool2d_backward_strips_kernel(SIMT_GRID_CONST(Sizes) s, const T* __restrict__ dy,
                                                  T* __restrict__ dx) {
  for (std::int64_t row : lib::row_range(s.in_rows())) {
    const std::int64_t n = row / s.height;
    const lib::CoveringWindows rows = s.windows_over_row(static_cast<int>(row - n * s.height));
    for (int iw = 0; iw < s.width; ++iw) {
      const lib::CoveringWindows cols = s.windows_over_col(iw);
      T* const to = dx + (row * s.width + iw) * s.channels;
      if (rows.first == rows.last && cols.first == cols.last) {  // one window: no sum
        const float weight = s.weight(s.rows_of(rows.first), s.cols_of(cols.first));
        const T* only = dy + ((n * s.out_height + rows.first) * s.out_width + cols.first) * s.channels;
        for (int c : lib::lane_range(s.channels)) to[c] = lib::from_f32<T>(weight * lib::to_f32(only[c]));
        continue;
      }
      for (int strip : lib::lane_range(lib::strips(s.channels, kStrip))) {
        const int first = strip * kStrip;
        const int width = lib::strip_width(s.channels, strip, kStrip);
        lib::Strip<kStrip> sums;
        for (int oh = rows.first; oh <= rows.last; ++oh)
          for (int ow = cols.first; ow <= cols.last; ++ow)
            sums.add_product(s.weight(s.rows_of(oh), s.cols_of(ow)),
                             dy + ((n * s.out_height + oh) * s.out_width + ow) * s.channels + first, width);
        sums.for_each(width, [&](int c, float sum) { to[first + c] = lib::from_f32<T>(sum); });
      }
    }
  }
}

void forward(Stream& stream, const ForwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.out_elements() == 0) return;
  const Sizes sizes(g);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<avg_pool2d_forward_strips_kernel<T>>(
        stream, lib::rows_for(stream, sizes.out_rows(), g.in_elements()), sizes, static_cast<const T*>(args.x),
        static_cast<T*>(args.y));
  });
}

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.in_elements() == 0) return;
  const Sizes sizes(g);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<avg_pool2d_backward_strips_kernel<T>>(
        stream, lib::rows_for(stream, sizes.in_rows(), g.in_elements()), sizes, static_cast<const T*>(args.dy),
        static_cast<T*>(args.dx));
  });
}

}  // namespace

Variant strips() { return {"strips", forward, backward, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::avg_pool2d
