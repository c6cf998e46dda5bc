// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/reference.h"
#include "kernels/lib/windows.h"
#include "kernels/ops/avg_pool2d/avg_pool2d.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::avg_pool2d {
inline namespace GRADRING_KERNEL_COPY {

/// A geometry as kernels count: within an image in int.
struct Sizes {
  std::int64_t batch;
  int height, width, channels, out_height, out_width, window_height, window_width, stride, padding;
  float whole_window;  ///< 1 / d of a window that counts every position; 0: of those that hold inputs

  /// Errors    InvalidArgument if an extent does not fit.
  explicit Sizes(const Geometry& g)
      : batch(g.batch),
        height(lib::narrow<int>("avg_pool2d", "height + padding", g.height + g.padding) - static_cast<int>(g.padding)),
        width(static_cast<int>(g.width)),
        channels(static_cast<int>(g.channels)),
        out_height(static_cast<int>(g.out_height())),
        out_width(static_cast<int>(g.out_width())),
        window_height(lib::narrow<int>("avg_pool2d", "window_height", g.window_height)),
        window_width(lib::narrow<int>("avg_pool2d", "window_width", g.window_width)),
        stride(lib::narrow<int>("avg_pool2d", "stride", g.stride)),
        padding(static_cast<int>(g.padding)),
        whole_window(g.count_include_pad ? 1.0f / static_cast<float>(g.window_elements()) : 0.0f) {
    lib::narrow<int>("avg_pool2d", "(width + padding) * channels", (g.width + g.padding) * g.channels);
    lib::narrow<int>("avg_pool2d", "out_width * channels", g.out_width() * g.channels);
  }

  __host__ __device__ std::int64_t out_rows() const { return batch * out_height; }
  __host__ __device__ std::int64_t in_rows() const { return batch * height; }
  /// Elements of a row of x.
  __device__ std::int64_t line() const { return std::int64_t{width} * channels; }

  /// Where a window begins; negative in the padding.
  __device__ int top_of(int oh) const { return oh * stride - padding; }
  __device__ int left_of(int ow) const { return ow * stride - padding; }
  __device__ lib::InsideWindow rows_of(int oh) const { return {top_of(oh), window_height, height}; }
  __device__ lib::InsideWindow cols_of(int ow) const { return {left_of(ow), window_width, width}; }
  __device__ lib::CoveringWindows windows_over_row(int ih) const {
    return {ih + padding, window_height, stride, out_height};
  }
  __device__ lib::CoveringWindows windows_over_col(int iw) const {
    return {iw + padding, window_width, stride, out_width};
  }
  /// 1 / d.
  __device__ float weight(const lib::InsideWindow& rows, const lib::InsideWindow& cols) const {
    return whole_window > 0.0f ? whole_window : 1.0f / static_cast<float>(rows.count() * cols.count());
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::avg_pool2d
