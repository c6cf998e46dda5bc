// SPDX-License-Identifier: Apache-2.0
// Idea: a convolution within each group: for one position of the kernel, the inputs of a group are contiguous, and so
//   are their weights.
// Mapping: forward: each warp computes an output row, lanes over (position, strip of up to 4 filters of a group).
//   dgrad: each warp computes an input row, lanes over (position, strip of up to 8 input channels of a group). wgrad:
//   each block computes 8 input channels of one filter and kernel position; its threads divide the output rows among
//   them, then add up.
// Traffic and bound: an input is read once for each strip of filters and kernel position, from the caches; bound by
//   their bandwidth, and by loads that fetch one number.
// Still slow because: depthwise, every dot product has one element: a load of x and one of w for each multiplication,
//   and w's neighbours belong to other kernel positions.

#include "kernels/ops/grouped_conv2d/grouped_conv2d.h"

#include "kernels/lib/element.h"
#include "kernels/lib/register_sums.h"
#include "kernels/lib/rows.h"
#include "kernels/ops/conv2d/epilogue.cuh"
#include "kernels/ops/grouped_conv2d/taps.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::grouped_conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kChannels = 8;  // of a thread in dgrad and wgrad
constexpr int kWgradThreads = 64;

/// A geometry as the kernels count: within an image in int.
struct Sizes {
  std::int64_t batch;
  int in_height, in_width, in_channels, out_height, out_width, out_channels, kernel_height, kernel_width, groups;
  int inputs, filters;  // of a group
  ForwardAxis rows, cols;

  explicit Sizes(const Geometry& g) : batch(g.batch) {
    const DepthwisePass<ForwardAxis> pass = forward_pass(g);
    in_height = pass.operand_height;
    in_width = pass.operand_width;
    in_channels = pass.channels;
    out_height = pass.height;
    out_width = pass.width;
    lib::narrow<int>("grouped_conv2d", "out_width * out_channels", g.out_width() * g.out_channels);
    out_channels = lib::narrow<int>("grouped_conv2d", "out_channels", g.out_channels);
    kernel_height = pass.kernel_height;
    kernel_width = pass.kernel_width;
    groups = static_cast<int>(g.groups);
    inputs = static_cast<int>(g.group_inputs());
    filters = static_cast<int>(g.group_filters());
    rows = pass.rows;
    cols = pass.cols;
  }

  __host__ __device__ int taps() const { return kernel_height * kernel_width; }
  __device__ std::int64_t filter_elements() const { return std::int64_t{taps()} * inputs; }
  __device__ DgradAxis dgrad_rows() const { return {rows.stride, rows.padding, out_height}; }
  __device__ DgradAxis dgrad_cols() const { return {cols.stride, cols.padding, out_width}; }
};

template <class T, int kFilters>
__global__ void grouped_conv2d_forward_direct_kernel(SIMT_GRID_CONST(Sizes) s, const T* __restrict__ x,
                                                     const T* __restrict__ w, T* __restrict__ y,
                                                     conv2d::Epilogue<T> epilogue) {
  const int strips_of_group = lib::strips(s.filters, kFilters);
  const int strips = s.groups * strips_of_group;
  for (std::int64_t row : lib::row_range(s.batch * s.out_height)) {
    const std::int64_t n = row / s.out_height;
    const int oh = static_cast<int>(row - n * s.out_height);
    for (int item : lib::lane_range(s.out_width * strips)) {
      const int ow = item / strips;
      const int group = (item - ow * strips) / strips_of_group;
      const int strip = item - ow * strips - group * strips_of_group;
      const int filters = lib::strip_width(s.filters, strip, kFilters);
      const int first = group * s.filters + strip * kFilters;
      lib::Dots<kFilters> dots;
      for (int kh = 0; kh < s.kernel_height; ++kh) {
        const int ih = s.rows.source(oh, kh);
        if (ih < 0) continue;
        for (int kw = 0; kw < s.kernel_width; ++kw) {
          const int iw = s.cols.source(ow, kw);
          if (iw < 0) continue;
          dots.add(x + ((n * s.in_height + ih) * s.in_width + iw) * s.in_channels + group * s.inputs,
                   w + first * s.filter_elements() + (kh * s.kernel_width + kw) * s.inputs, s.filter_elements(),
                   filters, s.inputs);
        }
      }
      T* to = y + (row * s.out_width + ow) * s.out_channels + first;
      dots.for_each(filters, [&](int o, float sum) { to[o] = lib::from_f32<T>(epilogue.finished(sum, first + o)); });
    }
  }
}

template <class T>
__global__ void grouped_conv2d_dgrad_direct_kernel(SIMT_GRID_CONST(Sizes) s, const T* __restrict__ dy,
                                                   const T* __restrict__ w, T* __restrict__ dx) {
  const int strips_of_group = lib::strips(s.inputs, kChannels);
  const int strips = s.groups * strips_of_group;
  const DgradAxis rows = s.dgrad_rows();
  const DgradAxis cols = s.dgrad_cols();
  for (std::int64_t row : lib::row_range(s.batch * s.in_height)) {
    const std::int64_t n = row / s.in_height;
    const int ih = static_cast<int>(row - n * s.in_height);
    for (int item : lib::lane_range(s.in_width * strips)) {
      const int iw = item / strips;
      const int group = (item - iw * strips) / strips_of_group;
      const int first = (item - iw * strips - group * strips_of_group) * kChannels;
      const int width = s.inputs - first < kChannels ? s.inputs - first : kChannels;
      lib::Strip<kChannels> sums;
      for (int kh = 0; kh < s.kernel_height; ++kh) {
        const int oh = rows.source(ih, kh);
        if (oh < 0) continue;
        for (int kw = 0; kw < s.kernel_width; ++kw) {
          const int ow = cols.source(iw, kw);
          if (ow < 0) continue;
          const T* dy_here = dy + ((n * s.out_height + oh) * s.out_width + ow) * s.out_channels;
          const T* w_here = w + (kh * s.kernel_width + kw) * s.inputs + first;
          for (int o = group * s.filters; o < (group + 1) * s.filters; ++o)
            sums.add_product(lib::to_f32(dy_here[o]), w_here + o * s.filter_elements(), width);
        }
      }
      T* to = dx + (row * s.in_width + iw) * s.in_channels + group * s.inputs + first;
      sums.for_each(width, [&](int i, float sum) { to[i] = lib::from_f32<T>(sum); });
    }
  }
}

/// blockIdx.x: the strip of input channels, the kernel position, and the filter.
template <class T>
__global__ void grouped_conv2d_wgrad_direct_kernel(SIMT_GRID_CONST(Sizes) s, const T* __restrict__ x,
                                                   const T* __restrict__ dy, float* __restrict__ dw, bool accumulate) {
  const int strips = lib::strips(s.inputs, kChannels);
  const int tap_of_filter = static_cast<int>(blockIdx.x) / strips;
  const int first = (static_cast<int>(blockIdx.x) - tap_of_filter * strips) * kChannels;
  const int o = tap_of_filter / s.taps();
  const int tap = tap_of_filter - o * s.taps();
  const int kh = tap / s.kernel_width;
  const int kw = tap - kh * s.kernel_width;
  const int width = s.inputs - first < kChannels ? s.inputs - first : kChannels;
  const int first_input = o / s.filters * s.inputs + first;
  lib::Strip<kChannels> strip;
  for (unsigned row : simt::block_range(0, static_cast<unsigned>(s.batch * s.out_height))) {
    const std::int64_t n = row / static_cast<unsigned>(s.out_height);
    const int ih = s.rows.source(static_cast<int>(row - n * s.out_height), kh);
    if (ih < 0) continue;
    const T* x_row = x + (n * s.in_height + ih) * s.in_width * s.in_channels + first_input;
    const T* dy_row = dy + std::int64_t{row} * s.out_width * s.out_channels + o;
    for (int ow = 0; ow < s.out_width; ++ow) {
      const int iw = s.cols.source(ow, kw);
      if (iw >= 0) strip.add_product(lib::to_f32(dy_row[ow * s.out_channels]), x_row + iw * s.in_channels, width);
    }
  }
  float sums[kChannels];
  strip.copy_to(sums);
  lib::block_sum<kWgradThreads>(sums, [&](int i, float sum) {
    if (i >= width) return;
    float& to = dw[std::int64_t{tap_of_filter} * s.inputs + first + i];
    to = accumulate ? to + sum : sum;
  });
}

std::size_t no_workspace(const Geometry&) { return 0; }

}  // namespace

void direct_forward(Stream& stream, const ForwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.out_elements() == 0) return;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    lib::with_bool(g.group_filters() >= 4, [&](auto many) {
      simt::launch_flat<grouped_conv2d_forward_direct_kernel<T, many.value ? 4 : 1>>(
          stream, lib::rows_for(stream, g.batch * g.out_height(), g.out_elements() * g.filter_elements()), Sizes(g),
          static_cast<const T*>(args.x), static_cast<const T*>(args.w), static_cast<T*>(args.y),
          conv2d::Epilogue<T>(args));
    });
  });
}

void direct_dgrad(Stream& stream, const DgradArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.in_elements() == 0) return;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<grouped_conv2d_dgrad_direct_kernel<T>>(
        stream, lib::rows_for(stream, g.batch * g.in_height, g.out_elements() * g.filter_elements()), Sizes(g),
        static_cast<const T*>(args.dy), static_cast<const T*>(args.w), static_cast<T*>(args.dx));
  });
}

void direct_wgrad(Stream& stream, const WgradArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.weight_elements() == 0) return;
  const std::int64_t blocks = g.out_channels * g.taps() * lib::strips(g.group_inputs(), kChannels);
  const simt::Config config{.grid = dim3(static_cast<unsigned>(lib::narrow<int>("grouped_conv2d", "weights", blocks))),
                            .block = dim3(kWgradThreads)};
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch<grouped_conv2d_wgrad_direct_kernel<T>>(stream, config, Sizes(g), static_cast<const T*>(args.x),
                                                        static_cast<const T*>(args.dy), args.dw, args.accumulate);
  });
}

Variant direct() {
  return {"direct", direct_forward, direct_dgrad, direct_wgrad, no_workspace, lib::supports_floating};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::grouped_conv2d
