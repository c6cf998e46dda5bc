// SPDX-License-Identifier: Apache-2.0
// Idea: NHWC and OHWI agree: for one kernel row, the kernel_width * in_channels inputs under it are one contiguous
//   run, and so are the filter's weights. A convolution is kernel_height dot products of such runs; its gradients are
//   the same products, added up elsewhere. Padding only shortens the runs.
// Mapping: forward: a warp per output row, lanes over its positions, blockIdx.y over strips of 8 filters. dgrad: a
//   warp per input row, lanes over its positions, blockIdx.y over strips of 32 input channels. wgrad: a block per
//   weight position and strip of 32 filters; its threads share out the output rows, then add up.
// Traffic and bound: inputs are read once per strip of filters and kernel row, weights once per position, all but the
//   first time from the caches; bound by their bandwidth.
// Still slow because: nothing is shared within a block, and with one input channel the runs are shorter than a
//   vector. Tiles in shared memory would serve many positions per load; tensor cores want the whole as one matrix
//   product.
// Limits: kernel_width * in_channels < 2^31.

#include "kernels/conv2d/conv2d.h"

#include "kernels/lib/block_sum.h"
#include "kernels/lib/dots.h"
#include "kernels/lib/element.h"
#include "kernels/lib/rows.h"
#include "kernels/lib/strip.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kFilters = 8;        // of a thread in the forward pass
constexpr int kChannels = 32;      // of a thread in dgrad
constexpr int kWgradFilters = 32;  // of a block in wgrad
constexpr int kWgradThreads = 64;

/// The part [first, end) of a kernel's extent that does not fall into the padding, for the output at `at` of one axis.
struct Span {
  int first, end;
  __device__ Span(std::int64_t at, std::int64_t stride, std::int64_t padding, std::int64_t kernel, std::int64_t in) {
    const std::int64_t origin = at * stride - padding;  // where the kernel's first element lies
    first = origin < 0 ? static_cast<int>(-origin < kernel ? -origin : kernel) : 0;
    end = in - origin < kernel ? static_cast<int>(in - origin > first ? in - origin : first) : static_cast<int>(kernel);
  }
};

template <class T>
__global__ void conv2d_forward_direct_kernel(SIMT_GRID_CONST(Geometry) g, const T* __restrict__ x,
                                             const T* __restrict__ w, T* __restrict__ y) {
  const int strip = static_cast<int>(blockIdx.y);
  const int filters = lib::strip_width(g.out_channels, strip, kFilters);
  const T* w_strip = w + strip * kFilters * g.filter_elements();
  for (std::int64_t row : lib::row_range(g.batch * g.out_height())) {
    const std::int64_t n = row / g.out_height();
    const std::int64_t oh = row - n * g.out_height();
    const Span tall(oh, g.stride, g.padding, g.kernel_height, g.in_height);
    const T* x_row = x + (n * g.in_height + oh * g.stride - g.padding) * g.in_width * g.in_channels;
    for (int ow : lib::lane_range(static_cast<int>(g.out_width()))) {
      const Span wide(ow, g.stride, g.padding, g.kernel_width, g.in_width);
      const int run = (wide.end - wide.first) * static_cast<int>(g.in_channels);
      const std::int64_t iw = ow * g.stride - g.padding + wide.first;
      lib::Dots<kFilters> dots;
      for (int kh = tall.first; kh < tall.end; ++kh)
        dots.add(x_row + (kh * g.in_width + iw) * g.in_channels, 1,
                 w_strip + (kh * g.kernel_width + wide.first) * g.in_channels, g.filter_elements(), filters, run);
      T* to = y + (row * g.out_width() + ow) * g.out_channels + strip * kFilters;
      lib::for_strip<kFilters>(filters, [&](int o) { to[o] = lib::from_f32<T>(dots.sum(o)); });
    }
  }
}

template <class T>
__global__ void conv2d_dgrad_direct_kernel(SIMT_GRID_CONST(Geometry) g, const T* __restrict__ dy,
                                           const T* __restrict__ w, T* __restrict__ dx) {
  const int strip = static_cast<int>(blockIdx.y);
  const int width = lib::strip_width(g.in_channels, strip, kChannels);
  const int stride = static_cast<int>(g.stride);
  for (std::int64_t row : lib::row_range(g.batch * g.in_height)) {
    const std::int64_t n = row / g.in_height;
    const int ih = static_cast<int>(row - n * g.in_height + g.padding);
    for (int iw : lib::lane_range(static_cast<int>(g.in_width))) {
      float sums[kChannels] = {};
      for (int kh = 0; kh < g.kernel_height; ++kh) {
        const int oh = (ih - kh) / stride;
        if (kh > ih || oh * stride != ih - kh || oh >= g.out_height()) continue;
        for (int kw = 0; kw < g.kernel_width; ++kw) {
          const int at = iw + static_cast<int>(g.padding) - kw;
          const int ow = at / stride;
          if (at < 0 || ow * stride != at || ow >= g.out_width()) continue;
          const T* dy_here = dy + ((n * g.out_height() + oh) * g.out_width() + ow) * g.out_channels;
          const T* w_here = w + (kh * g.kernel_width + kw) * g.in_channels + strip * kChannels;
          for (std::int64_t o = 0; o < g.out_channels; ++o) {
            const float factor = lib::to_f32(dy_here[o]);
            const T* w_run = w_here + o * g.filter_elements();
            lib::for_strip<kChannels>(width, [&](int i) { sums[i] += factor * lib::to_f32(w_run[i]); });
          }
        }
      }
      T* to = dx + (row * g.in_width + iw) * g.in_channels + strip * kChannels;
      lib::for_strip<kChannels>(width, [&](int i) { to[i] = lib::from_f32<T>(sums[i]); });
    }
  }
}

/// blockIdx.x: which of a filter's weights; blockIdx.y: the strip of filters.
template <class T>
__global__ void conv2d_wgrad_direct_kernel(SIMT_GRID_CONST(Geometry) g, const T* __restrict__ x,
                                           const T* __restrict__ dy, float* __restrict__ dw, bool accumulate) {
  const int strip = static_cast<int>(blockIdx.y);
  const int width = lib::strip_width(g.out_channels, strip, kWgradFilters);
  const std::int64_t tap = blockIdx.x / g.in_channels;
  const std::int64_t i = blockIdx.x - tap * g.in_channels;
  const std::int64_t kh = tap / g.kernel_width;
  const std::int64_t kw = tap - kh * g.kernel_width;
  float sums[kWgradFilters] = {};
  for (unsigned row : simt::block_range(0, static_cast<unsigned>(g.batch * g.out_height()))) {
    const std::int64_t n = row / g.out_height();
    const std::int64_t ih = (row - n * g.out_height()) * g.stride + kh - g.padding;
    if (ih < 0 || ih >= g.in_height) continue;
    const T* x_row = x + (n * g.in_height + ih) * g.in_width * g.in_channels + i;
    const T* dy_row = dy + row * g.out_width() * g.out_channels + strip * kWgradFilters;
    for (std::int64_t ow = 0; ow < g.out_width(); ++ow) {
      const std::int64_t iw = ow * g.stride + kw - g.padding;
      if (iw < 0 || iw >= g.in_width) continue;
      const float factor = lib::to_f32(x_row[iw * g.in_channels]);
      const T* dy_here = dy_row + ow * g.out_channels;
      lib::for_strip<kWgradFilters>(width, [&](int o) { sums[o] += factor * lib::to_f32(dy_here[o]); });
    }
  }
  const float sum = lib::block_sum<kWgradThreads>(sums);
  const int o = static_cast<int>(threadIdx.x);
  if (o >= width) return;
  float& to = dw[(strip * kWgradFilters + o) * g.filter_elements() + blockIdx.x];
  to = accumulate ? to + sum : sum;
}

/// The grid of a kernel whose warps walk along rows, for each strip of `channels`.
simt::Config config_for(Stream& stream, const Geometry& g, std::int64_t rows, std::int64_t channels, int strip) {
  simt::Config config = lib::rows_for(stream, rows, g.out_elements() * g.filter_elements());
  config.grid.y = static_cast<unsigned>(lib::strips(channels, strip));
  return config;
}

void forward(Stream& stream, const ForwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.out_elements() == 0) return;
  lib::with_element(args.dtype, [&](auto element) {
    using T = typename decltype(element)::type;
    simt::launch_flat<conv2d_forward_direct_kernel<T>>(
        stream, config_for(stream, g, g.batch * g.out_height(), g.out_channels, kFilters), g,
        static_cast<const T*>(args.x), static_cast<const T*>(args.w), static_cast<T*>(args.y));
  });
}

void dgrad(Stream& stream, const DgradArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.in_elements() == 0) return;
  lib::with_element(args.dtype, [&](auto element) {
    using T = typename decltype(element)::type;
    simt::launch_flat<conv2d_dgrad_direct_kernel<T>>(
        stream, config_for(stream, g, g.batch * g.in_height, g.in_channels, kChannels), g,
        static_cast<const T*>(args.dy), static_cast<const T*>(args.w), static_cast<T*>(args.dx));
  });
}

void wgrad(Stream& stream, const WgradArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  const simt::Config config{.grid = dim3(static_cast<unsigned>(g.filter_elements()),
                                         static_cast<unsigned>(lib::strips(g.out_channels, kWgradFilters))),
                            .block = dim3(kWgradThreads)};
  lib::with_element(args.dtype, [&](auto element) {
    using T = typename decltype(element)::type;
    simt::launch<conv2d_wgrad_direct_kernel<T>>(stream, config, g, static_cast<const T*>(args.x),
                                                static_cast<const T*>(args.dy), args.dw, args.accumulate);
  });
}

}  // namespace

Variant direct() { return {"direct", forward, dgrad, wgrad, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
