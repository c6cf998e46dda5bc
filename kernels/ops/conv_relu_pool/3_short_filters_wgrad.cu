// SPDX-License-Identifier: Apache-2.0
// Idea: dw and db of filters with few weights (a first convolution): a gradient that its window's code lets pass meets
//   the few inputs under one filter, which are nearby in an image in shared memory; the other elements of the window
//   are never looked at. All sums of a filter stay in the registers of one thread.
// Mapping: a lane per filter, a warp per window, blockIdx.x: a slice of all windows, blockIdx.y: 32 filters. A block
//   stores each image of its slice with its padding in shared memory, as f32. The sums of its warps are added up at the
//   end, the slices by a second kernel (lib/split_k.h), both in ascending order.
// Traffic and bound: dy, codes and x are read once for 32 filters. For each window and filter a load from shared memory
//   and a product for each weight, and some fifteen instructions more: bound by issuing them.
// Gains over the step before: a quarter of the products (2 x 2 windows), no padding of 10 columns to 32, no matrices.
// Still slow because: a product takes a load from shared memory of its own; gradients that ReLU cut off are multiplied.
// Limits: the filters of with_short_filter, at most 65,536 of them; an image, with padding, of at most 32 KB as f32. An
//   infinity in x times the zero of an output that is cut off is NaN.

#include <algorithm>
#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/lib/reference.h"
#include "kernels/lib/split_k.h"
#include "kernels/ops/conv2d/patches.cuh"
#include "kernels/ops/conv_relu_pool/short_filters.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kWindowsAtOnce = 4;  // of a warp: their loads are on the way together
constexpr int kCodes = 16;
constexpr int kSumsPitch = 33;  // of 32 filters' sums in shared memory, so that those of one are in different banks
constexpr std::int64_t kMostImageElements = 8192;
constexpr std::int64_t kMostFilters = 65536;
constexpr std::int64_t kMostBlocks = 256;   // some two for each multiprocessor of a large GPU
constexpr std::int64_t kLeastWindows = 32;  // of a slice

struct Shape {
  int filters, code_bytes;        // a position's
  int windows, windows_of_slice;  // all, and a block's
  conv2d::Divisor windows_of_image, windows_of_line;
  int height, line;                               // of an image: rows, and elements of a row
  int margin_rows, margin, pitch, padded_height;  // the padding above and before; the extents with it
  int down, across;                               // from a window to the next, in elements of the padded image
  int size, element_down, element_across;         // of a window; from an element of it to the next
};

/// Stores an image with its padding.
template <class T>
__device__ void store_image(float* to, const T* image, const Shape& s) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (int y = warp; y < s.padded_height; y += kWarps) {
    const int row = y - s.margin_rows;
    const bool exists = row >= 0 && row < s.height;
    for (int x = static_cast<int>(threadIdx.x) % 32; x < s.pitch; x += 32) {
      const int column = x - s.margin;
      const bool inside = exists && column >= 0 && column < s.line;
      to[y * s.pitch + x] = inside ? lib::to_f32(image[row * s.line + column]) : 0.0f;
    }
  }
}

template <class Filter>
struct FilterSums {
  float dw[Filter::kKernel][Filter::kRow] = {};
  float db = 0;

  __device__ void add(float gradient, const float* inputs, int pitch) {
    SIMT_UNROLL_ON_GPU
    for (int row = 0; row < Filter::kKernel; ++row) {
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < Filter::kRow; ++i) dw[row][i] += gradient * inputs[row * pitch + i];
    }
    db += gradient;
  }
};

template <class T, class Filter>
__global__ void __launch_bounds__(kThreads)
    conv_relu_pool_short_wgrad_kernel(SIMT_GRID_CONST(Shape) s, const T* __restrict__ x, const T* __restrict__ dy,
                                      const std::uint8_t* __restrict__ codes, float* __restrict__ dw_slices,
                                      float* __restrict__ db_slices) {
  constexpr int kSums = Filter::kWeights + 1;
  SIMT_DYNAMIC_SHARED(float, memory);  // the image; after all images the warps' sums
  SIMT_SHARED(int[kCodes], offset_of_code);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_filter = static_cast<int>(blockIdx.y) * 32;
  const int filter = first_filter + lane;
  if (threadIdx.x < kCodes) {
    const int code = static_cast<int>(threadIdx.x);
    const bool is_element = code < s.size * s.size;
    offset_of_code[code] = is_element ? code / s.size * s.element_down + code % s.size * s.element_across : 0;
  }
  FilterSums<Filter> sums;
  const int begin = static_cast<int>(blockIdx.x) * s.windows_of_slice;
  const int end = s.windows - begin < s.windows_of_slice ? s.windows : begin + s.windows_of_slice;
  const int windows_of_image = s.windows_of_image.value();
  for (int image = s.windows_of_image.divide(begin).quotient, left = end - image * windows_of_image; left > 0;
       ++image, left -= windows_of_image) {
    __syncthreads();  // no warp still reads the image before
    store_image(memory, x + std::int64_t{image} * s.height * s.line, s);
    __syncthreads();  // the image, and offset_of_code, are complete
    const int before = image * windows_of_image;
    const int last = left < windows_of_image ? left : windows_of_image;
    const T* const dy_image = dy + std::int64_t{before} * s.filters + filter;
    const std::uint8_t* const codes_image = codes + std::int64_t{before} * s.code_bytes + filter / 2;
    for (int first = (begin > before ? begin - before : 0) + warp; first < last; first += kWarps * kWindowsAtOnce) {
      T gradients[kWindowsAtOnce];
      unsigned codes_of_pair[kWindowsAtOnce];
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kWindowsAtOnce; ++i) {
        const int window = first + i * kWarps;
        gradients[i] = lib::from_f32<T>(0.0f);
        codes_of_pair[i] = 0;
        if (window >= last || filter >= s.filters) continue;
        gradients[i] = dy_image[window * s.filters];
        codes_of_pair[i] = codes_image[window * s.code_bytes];
      }
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kWindowsAtOnce; ++i) {
        const int window = first + i * kWarps;
        if (window >= last) break;
        const unsigned code = codes_of_pair[i] >> filter % 2 * 4 & 15u;
        const auto [line, column] = s.windows_of_line.divide(window);
        const float gradient = code == kCutOff ? 0.0f : lib::to_f32(gradients[i]);
        sums.add(gradient, memory + (line * s.down + column * s.across + offset_of_code[code]), s.pitch);
      }
    }
  }
  __syncthreads();  // no warp still reads the last image
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < kSums; ++i)
    memory[(warp * kSums + i) * kSumsPitch + lane] =
        i == Filter::kWeights ? sums.db : sums.dw[i / Filter::kRow][i % Filter::kRow];
  __syncthreads();  // the sums of all warps are there
  const auto total = [&](int sum_index, int of_filter) {
    float sum = 0;
    for (int i = 0; i < kWarps; ++i) sum += memory[(i * kSums + sum_index) * kSumsPitch + of_filter];
    return sum;
  };
  const int filters = s.filters - first_filter < 32 ? s.filters - first_filter : 32;
  const std::int64_t to = std::int64_t{blockIdx.x} * s.filters + first_filter;
  for (int i = static_cast<int>(threadIdx.x); i < filters * Filter::kWeights; i += kThreads)
    dw_slices[to * Filter::kWeights + i] = total(i % Filter::kWeights, i / Filter::kWeights);
  if (threadIdx.x < static_cast<unsigned>(filters)) db_slices[to + lane] = total(Filter::kWeights, lane);
}

std::int64_t padded_elements(const conv2d::Geometry& g) {
  return (g.in_height + 2 * g.padding) * (g.in_width + 2 * g.padding) * g.in_channels;
}

std::int64_t blocks_down(const Geometry& g) { return lib::ceil_div(g.conv.out_channels, 32); }

std::int64_t most_slices(const Geometry& g) {
  const std::int64_t most = std::max<std::int64_t>(1, kMostBlocks / std::max<std::int64_t>(1, blocks_down(g)));
  return std::clamp<std::int64_t>(g.out_positions() / kLeastWindows, 1, most);
}

/// Of all slices but the last.
std::int64_t windows_of_slice(const Geometry& g) {
  return std::max<std::int64_t>(1, lib::ceil_div(g.out_positions(), most_slices(g)));
}

Shape shape_of(const Geometry& g) {
  const conv2d::Geometry& conv = g.conv;
  const auto as_int = [](std::int64_t value) { return static_cast<int>(value); };
  const std::int64_t pitch = (conv.in_width + 2 * conv.padding) * conv.in_channels;
  const std::int64_t down = conv.stride * pitch;
  const std::int64_t across = conv.stride * conv.in_channels;
  return {.filters = lib::narrow<int>("conv_relu_pool", "out_channels", conv.out_channels),
          .code_bytes = as_int(g.code_bytes_of_position()),
          .windows = lib::narrow<int>("conv_relu_pool", "positions", g.out_positions()),
          .windows_of_slice = as_int(windows_of_slice(g)),
          .windows_of_image = conv2d::Divisor(as_int(g.out_height() * g.out_width())),
          .windows_of_line = conv2d::Divisor(as_int(g.out_width())),
          .height = as_int(conv.in_height),
          .line = as_int(conv.in_width * conv.in_channels),
          .margin_rows = as_int(conv.padding),
          .margin = as_int(conv.padding * conv.in_channels),
          .pitch = as_int(pitch),
          .padded_height = as_int(conv.in_height + 2 * conv.padding),
          .down = as_int(g.window * down),
          .across = as_int(g.window * across),
          .size = as_int(g.window),
          .element_down = as_int(down),
          .element_across = as_int(across)};
}

}  // namespace

namespace short_filters {

bool knows_wgrad(const Geometry& g) {
  return padded_elements(g.conv) <= kMostImageElements && g.conv.out_channels <= kMostFilters &&
         with_short_filter(g.conv, [](auto) {});
}

std::size_t wgrad_workspace_bytes(const Geometry& g) {
  return static_cast<std::size_t>(most_slices(g) * g.conv.out_channels * (g.conv.filter_elements() + 1)) *
         sizeof(float);
}

bool wgrad(Stream& stream, const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  if (!knows_wgrad(g)) return false;
  if (g.conv.out_channels == 0) return true;
  lib::check_pointer("conv_relu_pool backward", "workspace", args.workspace);
  const Shape shape = shape_of(g);
  const auto slices = static_cast<int>(std::max<std::int64_t>(1, lib::ceil_div(shape.windows, shape.windows_of_slice)));
  auto* dw_slices = static_cast<float*>(args.workspace);
  float* db_slices = dw_slices + slices * g.conv.weight_elements();
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    with_short_filter(g.conv, [&]<class Filter>(Filter) {
      constexpr std::int64_t kSumsOfBlock = kWarps * kSumsPitch * (Filter::kWeights + 1);
      const std::int64_t elements = std::max(padded_elements(g.conv), kSumsOfBlock);
      const simt::Config config{.grid = dim3(static_cast<unsigned>(slices), static_cast<unsigned>(blocks_down(g))),
                                .block = dim3(kThreads),
                                .shared_bytes = static_cast<std::size_t>(elements) * sizeof(float)};
      simt::launch<conv_relu_pool_short_wgrad_kernel<T, Filter>>(stream, config, shape, static_cast<const T*>(args.x),
                                                                 static_cast<const T*>(args.dy), args.codes, dw_slices,
                                                                 db_slices);
    });
  });
  lib::sum_slices(stream, slices, {dw_slices, g.conv.weight_elements(), args.dw},
                  {db_slices, g.conv.out_channels, args.db}, args.accumulate, args.partial_sums);
  return true;
}

}  // namespace short_filters

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
