// SPDX-License-Identifier: Apache-2.0
// Idea: the gradients of filters with few weights as a small matrix product. A row is a weight, a column a filter, and K
//   are the elements of all windows; a row of ones below the weights makes db:
//     dw[weight, filter] = sum over (window, element) of x[window, element + weight] * dz[(window, element), filter]
//   Two neighbouring elements are a pair of k. What a weight multiplies them by are neighbours in the image, so shared
//   memory has, for each input, the pair of it and the one to its right: every register of the operand is one word of
//   it. Their dz are dy and 0, 0 and dy, or 0 and 0: the code becomes the selector of a `prmt`.
// Mapping: a warp multiplies all weights by 16 windows and 32 filters. blockIdx.x: a slice of all windows; its block
//   brings the image rows of 128 windows at a time, one tile of 16 for each warp. blockIdx.y: 32 filters. The sums of
//   all warps meet in shared memory at the end; the slices are added up by another kernel (lib/split_k.h).
// Traffic and bound: x, dy and codes are read once. Bound by memory.
// Gains over the step before: tensor cores; an input is rounded once, and no operand needs an address but its window's;
//   two instructions make a register of dz.
// Still slow because: three of four products are by 0; rows at the border of two slices are read twice.
// Limits: filters of with_short_filter; 2 x 2 windows, stride 1; 2^30 windows; image rows that fit shared memory
//   (short_filters::knows). An infinity or a NaN in x times the zero of another element is NaN.

#include <algorithm>
#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/lib/split_k.h"
#include "kernels/lib/tensor_core.h"
#include "kernels/ops/conv2d/short_filters_wgrad.cuh"
#include "kernels/ops/conv_relu_pool/gradient_slices.h"
#include "kernels/ops/conv_relu_pool/short_filters.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace {

using conv2d::StoredImages;
using WindowGrid = conv2d::WindowGrid<2, 2>;
template <class Filter>
using StagedRows = conv2d::StagedRows<Filter, WindowGrid, Filter::kInputs>;
template <class Filter>
using WeightRows = conv2d::WeightRows<Filter>;

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr std::int64_t kMostSlices = 264;  // two blocks for each multiprocessor of a large GPU
constexpr int kStagedWindows = kWarps * kTileWindows;
constexpr int kThreadWindows = 4;  // of a tile: lane % 4 and every fourth from there
constexpr int kWindowStep = kTileWindows / kThreadWindows;
constexpr int kThreadFilters = 4;  // neighbours

struct Shape {
  conv2d::StagedShape<WindowGrid> rows;
  int filters, code_bytes;  // a position's
  int windows_of_slice;
  bool aligned;  // four filters of dy, and their codes, are one aligned access
};

/// dy and codes of a thread's windows and filters: a column of dz for each filter.
struct Gradients {
  uint2 dy[kThreadWindows];
  std::uint32_t codes[kThreadWindows];  // four, in half a register

  /// Of windows and filters that do not exist, codes are kCutOff.
  template <class T>
  __device__ void load(const Shape& s, const T* all_dy, const std::uint8_t* all_codes, int first_window, int end,
                       int filter) {
    if (s.aligned && filter < s.filters && first_window + (kThreadWindows - 1) * kWindowStep < end) {
      const T* const from = all_dy + std::int64_t{first_window} * s.filters + filter;
      const std::uint8_t* const codes_from = all_codes + std::int64_t{first_window} * s.code_bytes + filter / 2;
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kThreadWindows; ++i) {
        dy[i] = simt::load_as<uint2>(from + i * (kWindowStep * s.filters));
        codes[i] = simt::load_as<std::uint16_t>(codes_from + i * (kWindowStep * s.code_bytes));
      }
      return;
    }
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kThreadWindows; ++i) {
      const int window = first_window + i * kWindowStep;
      const int exist = window < end ? s.filters - filter : 0;
      const auto element = [&](int which) {
        return which < exist ? all_dy[std::int64_t{window} * s.filters + filter + which] : lib::from_f32<T>(0.0f);
      };
      const auto two_codes = [&](int which) {
        return which < exist ? all_codes[std::int64_t{window} * s.code_bytes + (filter + which) / 2] : 0xffu;
      };
      dy[i] = {lib::pair_of<T>(element(0), element(1)), lib::pair_of<T>(element(2), element(3))};
      codes[i] = two_codes(0) | two_codes(2) << 8;
    }
  }

  /// dz of a window's four elements. A code c selects the two bytes of dy for element c, by eight bits of a selector
  /// that are eight times c away from the first; kCutOff shifts them out.
  __device__ void column(std::uint32_t (&of_elements)[2], int window, int filter) const {
    constexpr std::uint32_t kLowerHalf = 0x54, kUpperHalf = 0x76;  // of the second argument; selector 0: of 0
    const std::uint32_t pair = filter < 2 ? dy[window].x : dy[window].y;
    const std::uint32_t distance =
        (filter == 0 ? codes[window] << 3 : codes[window] >> (4 * filter - 3)) & 8u * kCutOff;
    const std::uint32_t selectors = lib::shift_left(filter % 2 == 0 ? kLowerHalf : kUpperHalf, distance);
    of_elements[0] = lib::permute_bytes(0, pair, selectors);
    of_elements[1] = lib::permute_bytes(0, pair, selectors >> 16);
  }
};

template <class Filter>
struct alignas(16) Shared {
  unsigned window_bytes[kWarps][kWindowStep][kThreadWindows];  // from the first word of the rows on
  conv2d::SumsOfWarps<Filter, kWarps, kBlockFilters> sums;

  __device__ std::uint32_t* rows() { return reinterpret_cast<std::uint32_t*>(this + 1); }
};

/// sums += the products of a tile's windows.
template <class T, class Filter>
__device__ void add(conv2d::WeightSums<Filter, kThreadFilters>& sums, const WeightRows<Filter>& rows, int pitch_bytes,
                    const unsigned* window_bytes, const Gradients& gradients) {
  const auto bytes = simt::load_as<uint4>(window_bytes);
  SIMT_UNROLL_ON_GPU
  for (int window = 0; window < kThreadWindows; ++window) {
    std::uint32_t columns[kThreadFilters][2];
    SIMT_UNROLL_ON_GPU
    for (int filter = 0; filter < kThreadFilters; ++filter) gradients.column(columns[filter], window, filter);
    const unsigned of_window = window == 0 ? bytes.x : window == 1 ? bytes.y : window == 2 ? bytes.z : bytes.w;
    SIMT_UNROLL_ON_GPU
    for (int step = 0; step < sums.kSteps; ++step) {
      std::uint32_t inputs[4];
      SIMT_UNROLL_ON_GPU
      for (int half = 0; half < 2; ++half) {
        const char* const upper = rows.at(2 * step + half, of_window);
        inputs[half] = simt::load_as<std::uint32_t>(upper);
        inputs[2 + half] = simt::load_as<std::uint32_t>(upper + pitch_bytes);  // of the window's lower elements
      }
      SIMT_UNROLL_ON_GPU
      for (int filter = 0; filter < kThreadFilters; ++filter)
        lib::mma_m16n8k16<T>(sums.products[step][filter], inputs, columns[filter][0], columns[filter][1]);
    }
  }
}

template <class T, class Filter, class Images>
__global__ void __launch_bounds__(kThreads, 1)
    conv_relu_pool_short_wgrad_kernel(SIMT_GRID_CONST(Shape) s, SIMT_GRID_CONST(Images) images,
                                      const T* __restrict__ dy, const std::uint8_t* __restrict__ codes,
                                      float* __restrict__ dw_slices, float* __restrict__ db_slices) {
  SIMT_DYNAMIC_SHARED(Shared<Filter>, shared);
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int block_filter = static_cast<int>(blockIdx.y) * kBlockFilters;
  int begin = static_cast<int>(blockIdx.x) * s.windows_of_slice;
  const WindowGrid& grid = s.rows.grid;
  int left = grid.windows - begin < s.windows_of_slice ? grid.windows - begin : s.windows_of_slice;
  StagedRows<Filter> staged{shared->rows(), s.rows.pitch, 0};
  if (threadIdx.x < 2)  // in two neighbouring rows, as for two rows of a window
    staged.words[static_cast<int>(threadIdx.x) * staged.pitch + staged.last_word()] = lib::pair_of<T>(1.0f, 1.0f);
  const WeightRows<Filter> rows(staged, staged.last_word());
  const int pitch_bytes = staged.pitch * static_cast<int>(sizeof(std::uint32_t));
  conv2d::WeightSums<Filter, kThreadFilters> sums;
  for (; left > 0; begin += kStagedWindows, left -= kStagedWindows) {
    Gradients gradients{};  // on their way while the block waits for rows
    const bool has_tile = warp * kTileWindows < left;
    if (has_tile)
      gradients.load(s, dy, codes, begin + warp * kTileWindows + lane % 4, begin + left,
                     block_filter + lane / 4 * kThreadFilters);
    __syncthreads();  // the rows before are not needed any more
    staged.first_row = grid.row(grid.position(begin));
    const int last = (left < kStagedWindows ? left : kStagedWindows) - 1;
    staged.template load<T, kThreads>(images, s.rows, grid.row(grid.position(begin + last)) + Filter::kKernel);
    if (const unsigned i = threadIdx.x; i < kStagedWindows)
      shared->window_bytes[i / kTileWindows][i % kWindowStep][i % kTileWindows / kWindowStep] =
          staged.byte(grid, grid.position(begin + (static_cast<int>(i) < last ? static_cast<int>(i) : last)));
    __syncthreads();  // the rows are there
    if (has_tile) add<T>(sums, rows, pitch_bytes, shared->window_bytes[warp][lane % 4], gradients);
  }
  sums.store(shared->sums);
  __syncthreads();  // the sums of all warps are there
  const int filters = s.filters - block_filter < kBlockFilters ? s.filters - block_filter : kBlockFilters;
  const std::int64_t first_filter = std::int64_t{blockIdx.x} * s.filters + block_filter;
  shared->sums.store(dw_slices + first_filter * Filter::kWeights, filters);
  shared->sums.store_biases(db_slices + first_filter, filters);
}

std::int64_t tiles_of(const Geometry& g) { return lib::ceil_div(g.out_positions(), kTileWindows); }

std::int64_t tiles_of_slice(const Geometry& g) {
  return std::max<std::int64_t>(1, lib::ceil_div(tiles_of(g), kMostSlices * kWarps)) * kWarps;
}

template <class Filter>
std::size_t shared_bytes(const Geometry& g) {
  const std::int64_t words = StagedRows<Filter>::words_of(g.conv, kStagedWindows, g.out_height(), g.out_width());
  return sizeof(Shared<Filter>) + static_cast<std::size_t>(words) * sizeof(std::uint32_t);
}

template <class T, class X, class Filter>
void launch(Stream& stream, const BackwardArgs& args, const GradientSlices& sums) {
  const Geometry& g = args.geometry;
  const std::int64_t image = g.conv.in_height * g.conv.in_width * g.conv.in_channels;
  const StoredImages<T, X> images{static_cast<const X*>(args.x),
                                  lib::narrow<int>("conv_relu_pool", "elements of an image", image)};
  const std::int64_t filters = g.conv.out_channels;
  const Shape shape{.rows = StagedRows<Filter>::shape(g.conv, g.out_height(), g.out_width(), args.x, sizeof(X)),
                    .filters = lib::narrow<int>("conv_relu_pool", "out_channels", filters),
                    .code_bytes = static_cast<int>(g.code_bytes_of_position()),
                    .windows_of_slice = static_cast<int>(tiles_of_slice(g)) * kTileWindows,
                    .aligned = filters % kThreadFilters == 0 && reinterpret_cast<std::uintptr_t>(args.dy) % 8 == 0 &&
                               reinterpret_cast<std::uintptr_t>(args.codes) % 2 == 0};
  const simt::Config config{
      .grid = dim3(static_cast<unsigned>(sums.count), static_cast<unsigned>(lib::ceil_div(filters, kBlockFilters))),
      .block = dim3(kThreads),
      .shared_bytes = shared_bytes<Filter>(g)};
  simt::launch<conv_relu_pool_short_wgrad_kernel<T, Filter, StoredImages<T, X>>>(
      stream, config, shape, images, static_cast<const T*>(args.dy), args.codes, sums.dw, sums.db);
}

}  // namespace

namespace short_filters {

bool rows_fit(const Geometry& g) {
  bool fit = false;
  conv2d::with_short_filter(g.conv,
                            [&]<class Filter>(Filter) { fit = shared_bytes<Filter>(g) <= conv2d::kMostSharedBytes; });
  return fit;
}

std::size_t wgrad_workspace_bytes(const Geometry& g) { return GradientSlices::bytes(g, kMostSlices); }

bool wgrad(Stream& stream, const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  if (!knows(g)) return false;
  if (g.conv.out_channels == 0) return true;
  const GradientSlices sums(args, std::max<std::int64_t>(1, lib::ceil_div(tiles_of(g), tiles_of_slice(g))));
  conv2d::with_short_filter(g.conv, [&]<class Filter>(Filter) {
    lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
      const auto run = args.x_dtype == DType::f32 ? launch<T, float, Filter> : launch<T, T, Filter>;
      run(stream, args, sums);
    });
  });
  sums.sum(stream, args);
  return true;
}

}  // namespace short_filters

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
