// SPDX-License-Identifier: Apache-2.0
// Idea: NHWC and OHWI agree: for one kernel row, the kernel_width * in_channels inputs under it are contiguous, and so
//   are the filter's weights. A convolution is kernel_height dot products of such rows; its gradients are the same
//   products, added up elsewhere. Padding only shortens the rows.
// Mapping: forward: each warp computes an output row, lanes over its positions, blockIdx.y over strips of 8 filters.
//   dgrad: each warp computes an input row, lanes over groups of 4 positions, blockIdx.y over strips of 16 input
//   channels. wgrad: each block computes one kernel position, 4 input channels and 32 filters; its threads divide the
//   output rows among them, then add up.
// Traffic and bound: inputs are read once per strip of filters and kernel row, weights once per position, all but the
//   first time from the caches; bound by their bandwidth.
// Still slow because: nothing is shared within a block, and with one input channel the rows are shorter than a vector.
//   Tiles in shared memory would serve many positions per load; tensor cores need a matrix product.
// Limits: kernel_width * in_channels < 2^31, 524,280 filters, a million input channels.

#include "kernels/ops/conv2d/conv2d.h"

#include "kernels/lib/element.h"
#include "kernels/lib/register_sums.h"
#include "kernels/lib/rows.h"
#include "kernels/ops/conv2d/epilogue.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kFilters = 8;        // of a thread in the forward pass
constexpr int kPositions = 4;      // of a thread in dgrad
constexpr int kChannels = 16;      // of a thread in dgrad
constexpr int kWgradInputs = 4;    // of a block in wgrad
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
                                             const T* __restrict__ w, T* __restrict__ y, Epilogue<T> epilogue) {
  const int strip = static_cast<int>(blockIdx.y);
  const int filters = lib::strip_width(g.out_channels, strip, kFilters);
  const T* w_strip = w + strip * kFilters * g.whole_filter_elements();
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
        dots.add(x_row + (kh * g.in_width + iw) * g.in_channels,
                 w_strip + (kh * g.kernel_width + wide.first) * g.in_channels, g.whole_filter_elements(), filters, run);
      T* to = y + (row * g.out_width() + ow) * g.out_channels + strip * kFilters;
      dots.for_each(filters,
                    [&](int o, float sum) { to[o] = lib::from_f32<T>(epilogue.finished(sum, strip * kFilters + o)); });
    }
  }
}

template <class T>
__global__ void conv2d_dgrad_direct_kernel(SIMT_GRID_CONST(Geometry) g, const T* __restrict__ dy,
                                           const T* __restrict__ w, T* __restrict__ dx) {
  const int first_channel = static_cast<int>(blockIdx.y) * kChannels;
  const int width = lib::strip_width(g.in_channels, blockIdx.y, kChannels);
  const int stride = static_cast<int>(g.stride);
  const int in_width = static_cast<int>(g.in_width);
  const std::int64_t out_channels = g.out_channels;
  const std::int64_t filter = g.whole_filter_elements();
  for (std::int64_t row : lib::row_range(g.batch * g.in_height)) {
    const std::int64_t n = row / g.in_height;
    const int ih = static_cast<int>(row - n * g.in_height + g.padding);
    for (int group : lib::lane_range((in_width + kPositions - 1) / kPositions)) {
      const int first = group * kPositions;
      lib::Strip<kChannels> sums[kPositions];
      for (int kh = 0; kh < g.kernel_height; ++kh) {
        const int oh = (ih - kh) / stride;
        if (kh > ih || oh * stride != ih - kh || oh >= g.out_height()) continue;
        const T* dy_row = dy + (n * g.out_height() + oh) * g.out_width() * out_channels;
        for (int kw = 0; kw < g.kernel_width; ++kw) {
          const T* w_here = w + (kh * g.kernel_width + kw) * g.in_channels + first_channel;
          const T* dy_here[kPositions];  // the output that this weight links to each position, or null
          for (int p = 0; p < kPositions; ++p) {
            const int at = first + p + static_cast<int>(g.padding) - kw;
            const int ow = at / stride;
            const bool linked = at >= 0 && ow * stride == at && ow < g.out_width();
            dy_here[p] = linked ? dy_row + ow * out_channels : nullptr;
          }
          for (std::int64_t o = 0; o < out_channels; ++o) {
            SIMT_UNROLL
            for (int p = 0; p < kPositions; ++p)
              sums[p].add_product(dy_here[p] ? lib::to_f32(dy_here[p][o]) : 0.0f, w_here + o * filter, width);
          }
        }
      }
      SIMT_UNROLL
      for (int p = 0; p < kPositions; ++p) {
        if (first + p >= in_width) break;
        T* to = dx + (row * in_width + first + p) * g.in_channels + first_channel;
        sums[p].for_each(width, [&](int i, float sum) { to[i] = lib::from_f32<T>(sum); });
      }
    }
  }
}

/// blockIdx.x: a kernel position and a group of input channels; blockIdx.y: the strip of filters.
template <class T>
__global__ void conv2d_wgrad_direct_kernel(SIMT_GRID_CONST(Geometry) g, const T* __restrict__ x,
                                           const T* __restrict__ dy, float* __restrict__ dw, bool accumulate) {
  const int filters = lib::strip_width(g.out_channels, blockIdx.y, kWgradFilters);
  const std::int64_t groups = lib::strips(g.in_channels, kWgradInputs);
  const std::int64_t position = blockIdx.x / groups;
  const std::int64_t group = blockIdx.x - position * groups;
  const std::int64_t kh = position / g.kernel_width;
  const std::int64_t kw = position - kh * g.kernel_width;
  const std::int64_t first_input = group * kWgradInputs;
  const std::int64_t first_filter = std::int64_t{blockIdx.y} * kWgradFilters;
  const int inputs = lib::strip_width(g.in_channels, group, kWgradInputs);
  lib::Strip<kWgradFilters> sums[kWgradInputs];
  for (unsigned row : simt::block_range(0, static_cast<unsigned>(g.batch * g.out_height()))) {
    const std::int64_t n = row / g.out_height();
    const std::int64_t ih = (row - n * g.out_height()) * g.stride + kh - g.padding;
    if (ih < 0 || ih >= g.in_height) continue;
    const T* x_row = x + (n * g.in_height + ih) * g.in_width * g.in_channels + first_input;
    const T* dy_row = dy + row * g.out_width() * g.out_channels + first_filter;
    for (std::int64_t ow = 0; ow < g.out_width(); ++ow) {
      const std::int64_t iw = ow * g.stride + kw - g.padding;
      if (iw < 0 || iw >= g.in_width) continue;
      SIMT_UNROLL
      for (int i = 0; i < kWgradInputs; ++i)
        if (i < inputs)
          sums[i].add_product(lib::to_f32(x_row[iw * g.in_channels + i]), dy_row + ow * g.out_channels, filters);
    }
  }
  float values[kWgradInputs * kWgradFilters];
  SIMT_UNROLL
  for (int i = 0; i < kWgradInputs; ++i) sums[i].copy_to(values + i * kWgradFilters);
  lib::block_sum<kWgradThreads>(values, [&](int at, float sum) {
    const int i = at / kWgradFilters;
    const int o = at - i * kWgradFilters;
    if (i >= inputs || o >= filters) return;
    float& to = dw[(first_filter + o) * g.whole_filter_elements() + position * g.in_channels + first_input + i];
    to = accumulate ? to + sum : sum;
  });
}

/// The kernels count within an image in int, and a grid has at most 65,535 strips.
void check_limits(const Geometry& g) {
  lib::check_limit("conv2d", "groups", g.groups, 1);
  lib::narrow<int>("conv2d", "in_height + padding", g.in_height + g.padding);
  lib::narrow<int>("conv2d", "in_width + padding", g.in_width + g.padding);
  lib::narrow<int>("conv2d", "kernel_width * in_channels", g.kernel_width * g.in_channels);
  lib::narrow<int>("conv2d", "stride", g.stride);
  lib::narrow<unsigned>("conv2d", "batch * out_height", g.batch * g.out_height());
  lib::check_limit("conv2d", "out_channels", g.out_channels, 65535 * kFilters);
  lib::check_limit("conv2d", "in_channels", g.in_channels, 65535 * kChannels);
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
  check_limits(g);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<conv2d_forward_direct_kernel<T>>(
        stream, config_for(stream, g, g.batch * g.out_height(), g.out_channels, kFilters), g,
        static_cast<const T*>(args.x), static_cast<const T*>(args.w), static_cast<T*>(args.y), Epilogue<T>(args));
  });
}

void dgrad(Stream& stream, const DgradArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.in_elements() == 0) return;
  check_limits(g);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<conv2d_dgrad_direct_kernel<T>>(
        stream, config_for(stream, g, g.batch * g.in_height, g.in_channels, kChannels), g,
        static_cast<const T*>(args.dy), static_cast<const T*>(args.w), static_cast<T*>(args.dx));
  });
}

void wgrad(Stream& stream, const WgradArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  check_limits(g);
  const std::int64_t kernel_positions = g.kernel_height * g.kernel_width;
  const simt::Config config{
      .grid = dim3(static_cast<unsigned>(kernel_positions * lib::strips(g.in_channels, kWgradInputs)),
                   static_cast<unsigned>(lib::strips(g.out_channels, kWgradFilters))),
      .block = dim3(kWgradThreads)};
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch<conv2d_wgrad_direct_kernel<T>>(stream, config, g, static_cast<const T*>(args.x),
                                                static_cast<const T*>(args.dy), args.dw, args.accumulate);
  });
}

std::size_t no_workspace(const Geometry&) { return 0; }

}  // namespace

Variant direct() { return {"direct", forward, dgrad, wgrad, no_workspace, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
