// SPDX-License-Identifier: Apache-2.0
// Idea: the gradients of filters with few weights as a small matrix product: a row is a weight, a column a filter, K are
//   the positions of y. Two neighbours of a line are a pair of k: what a weight multiplies them by are neighbours in the
//   image, too. So shared memory has, for each input, the pair of it and the one to its right, and every register of the
//   operand is one word of it.
// Mapping: a warp multiplies all weights by 2 x 16 positions and 16 or 32 filters. blockIdx.x: a slice of all positions;
//   its block stages the image rows under 128 pairs at a time. blockIdx.y: the filters. The sums of all warps meet in
//   shared memory at the end; the slices are added up by another kernel (lib/split_k.h).
// Traffic and bound: x and dy are read once. Bound by memory.
// Gains over the step before (4_mma.cu): the weights fill the rows of one or two instructions, and no operand needs an
//   address but its pair's.
// Still slow because: rows at the border of two slices are read twice.
// Limits: filters of with_short_filter; stride 1; 2^30 positions and rows of images; image rows that fit shared memory.
//   An infinity or a NaN in x or dy times a zero (padding, positions that do not exist) is NaN.

#include <algorithm>
#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/ops/conv2d/short_filters_wgrad.cuh"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr std::int64_t kMostSlices = 132;  // one for each multiprocessor of a large GPU
constexpr int kTilePairs = 8;              // of positions, that a warp multiplies at once
constexpr int kTilesOfWarp = 2;
constexpr int kStaged = kWarps * kTilesOfWarp * kTilePairs;

using Grid = WindowGrid<1, 2>;
template <class Filter>
using Rows = StagedRows<Filter, Grid, Filter::kInputs>;

template <class T>
using Images = StoredImages<T, T>;

struct Shape {
  StagedShape<Grid> rows;
  int line;  // positions
  int filters;
  int pairs_of_slice;
  bool aligned;  // those of a thread are one aligned access
};

/// dy of a tile: of a thread's two pairs of positions and its filters.
template <class T, int kFilters>
struct Gradients {
  static constexpr int kPairs = 2;
  std::uint32_t of_positions[kPairs][2][kFilters / 2];

  __device__ void load(const Shape& s, const T* dy, int first_pair, int end, int filter) {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kPairs; ++i) {
      const int pair = first_pair + i * (kTilePairs / kPairs);
      const auto [line, column] = s.rows.grid.windows_of_line.divide(pair);
      const T* const from = dy + (std::int64_t{line} * s.line + 2 * column) * s.filters + filter;
      const bool exists = pair < end && filter < s.filters;
      load_position(of_positions[i][0], from, exists ? s.filters - filter : 0, s.aligned);
      load_position(of_positions[i][1], from + s.filters, exists && 2 * column + 1 < s.line ? s.filters - filter : 0,
                    s.aligned);
    }
  }

  /// What a filter's column multiplies pair `pair` by.
  __device__ std::uint32_t column(int pair, int filter) const {
    const auto& [first, second] = of_positions[pair];
    return filter % 2 == 0 ? lib::lower_of_pairs(first[filter / 2], second[filter / 2])
                           : lib::upper_of_pairs(first[filter / 2], second[filter / 2]);
  }

 private:
  __device__ static void load_position(std::uint32_t (&to)[kFilters / 2], const T* from, int filters, bool aligned) {
    if (aligned && filters > 0) {
      if constexpr (kFilters == 4) {
        const auto both = simt::load_as<uint2>(from);
        to[0] = both.x, to[1] = both.y;
      } else {
        to[0] = simt::load_as<std::uint32_t>(from);
      }
      return;
    }
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kFilters; i += 2)
      to[i / 2] = lib::pair_of<T>(i < filters ? from[i] : lib::from_f32<T>(0.0f),
                                  i + 1 < filters ? from[i + 1] : lib::from_f32<T>(0.0f));
  }
};

template <class Filter, int kThreadFilters>
struct alignas(16) Shared {
  unsigned bytes[kStaged];  // from the first word of the rows to a pair's
  SumsOfWarps<Filter, kWarps, 8 * kThreadFilters> sums;

  __device__ std::uint32_t* rows() { return reinterpret_cast<std::uint32_t*>(this + 1); }
};

template <class T, class Filter, int kThreadFilters>
__global__ void __launch_bounds__(kThreads, 1)
    conv2d_short_wgrad_kernel(SIMT_GRID_CONST(Shape) s, SIMT_GRID_CONST(Images<T>) images, const T* __restrict__ dy,
                              float* __restrict__ slices) {
  using BlockShared = Shared<Filter, kThreadFilters>;
  constexpr int kBlockFilters = 8 * kThreadFilters;
  SIMT_DYNAMIC_SHARED(BlockShared, shared);
  const Grid& grid = s.rows.grid;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int block_filter = static_cast<int>(blockIdx.y) * kBlockFilters;
  int begin = static_cast<int>(blockIdx.x) * s.pairs_of_slice;
  const int end = grid.windows - begin < s.pairs_of_slice ? grid.windows : begin + s.pairs_of_slice;
  Rows<Filter> staged{shared->rows(), s.rows.pitch, 0};
  if (threadIdx.x == 0) staged.words[staged.last_word()] = lib::pair_of<T>(1.0f, 1.0f);
  const WeightRows<Filter> rows(staged, staged.last_word());
  WeightSums<Filter, kThreadFilters> sums;
  for (; begin < end; begin += kStaged) {
    Gradients<T, kThreadFilters> gradients[kTilesOfWarp];  // on their way while the block waits for rows
    SIMT_UNROLL_ON_GPU
    for (int tile = 0; tile < kTilesOfWarp; ++tile)
      gradients[tile].load(s, dy, begin + (warp * kTilesOfWarp + tile) * kTilePairs + lane % 4, end,
                           block_filter + lane / 4 * kThreadFilters);
    __syncthreads();  // the rows before are not needed any more
    staged.first_row = grid.row(grid.position(begin));
    const int last = (end - begin < kStaged ? end - begin : kStaged) - 1;
    staged.template load<T, kThreads>(images, s.rows, grid.row(grid.position(begin + last)) + Filter::kKernel - 1);
    if (const auto i = static_cast<int>(threadIdx.x); i < kStaged)
      shared->bytes[i] = staged.byte(grid, grid.position(begin + (i < last ? i : last)));
    __syncthreads();  // the rows are there
    SIMT_UNROLL_ON_GPU
    for (int tile = 0; tile < kTilesOfWarp; ++tile) {
      const unsigned* const bytes = shared->bytes + (warp * kTilesOfWarp + tile) * kTilePairs + lane % 4;
      const unsigned of_pairs[2] = {bytes[0], bytes[kTilePairs / 2]};
      SIMT_UNROLL_ON_GPU
      for (int step = 0; step < sums.kSteps; ++step) {
        std::uint32_t inputs[4];
        SIMT_UNROLL_ON_GPU
        for (int i = 0; i < 4; ++i)
          inputs[i] = simt::load_as<std::uint32_t>(rows.at(2 * step + i % 2, of_pairs[i / 2]));
        SIMT_UNROLL_ON_GPU
        for (int filter = 0; filter < kThreadFilters; ++filter)
          lib::mma_m16n8k16<T>(sums.products[step][filter], inputs, gradients[tile].column(0, filter),
                               gradients[tile].column(1, filter));
      }
    }
  }
  sums.store(shared->sums);
  __syncthreads();  // the sums of all warps are there
  const int filters = s.filters - block_filter < kBlockFilters ? s.filters - block_filter : kBlockFilters;
  shared->sums.store(slices + (std::int64_t{blockIdx.x} * s.filters + block_filter) * Filter::kWeights, filters);
}

std::int64_t pairs_of_line(const Geometry& g) { return lib::ceil_div(g.out_width(), 2); }
std::int64_t pairs_of(const Geometry& g) { return g.batch * g.out_height() * pairs_of_line(g); }

std::int64_t pairs_of_slice(const Geometry& g) {
  return std::max<std::int64_t>(1, lib::ceil_div(pairs_of(g), kMostSlices * kStaged)) * kStaged;
}

template <class Filter, int kThreadFilters>
std::size_t shared_bytes(const Geometry& g) {
  const std::int64_t words = Rows<Filter>::words_of(g, kStaged, g.out_height(), pairs_of_line(g));
  return sizeof(Shared<Filter, kThreadFilters>) + static_cast<std::size_t>(words) * sizeof(std::uint32_t);
}

template <class T, class Filter, int kThreadFilters>
void launch(Stream& stream, const WgradArgs& args, int slices) {
  const Geometry& g = args.geometry;
  const Images<T> images{static_cast<const T*>(args.x),
                         lib::narrow<int>("conv2d", "elements of an image", g.in_height * g.in_width * g.in_channels)};
  constexpr std::uintptr_t kVector = kThreadFilters * sizeof(T);
  const Shape shape{
      .rows = Rows<Filter>::shape(g, g.out_height(), pairs_of_line(g), args.x, sizeof(T)),
      .line = static_cast<int>(g.out_width()),
      .filters = lib::narrow<int>("conv2d", "out_channels", g.out_channels),
      .pairs_of_slice = static_cast<int>(pairs_of_slice(g)),
      .aligned = g.out_channels % kThreadFilters == 0 && reinterpret_cast<std::uintptr_t>(args.dy) % kVector == 0};
  const simt::Config config{.grid = dim3(static_cast<unsigned>(slices),
                                         static_cast<unsigned>(lib::ceil_div(g.out_channels, 8 * kThreadFilters))),
                            .block = dim3(kThreads),
                            .shared_bytes = shared_bytes<Filter, kThreadFilters>(g)};
  simt::launch<conv2d_short_wgrad_kernel<T, Filter, kThreadFilters>>(
      stream, config, shape, images, static_cast<const T*>(args.dy), static_cast<float*>(args.workspace));
}

}  // namespace

namespace short_filters {

std::size_t wgrad_workspace_bytes(const Geometry& g) {
  const bool has_kernels = with_short_filter(g, [](auto) {});
  return has_kernels ? static_cast<std::size_t>(kMostSlices * g.weight_elements()) * sizeof(float) : 0;
}

bool wgrad(Stream& stream, const WgradArgs& args) {
  const Geometry& g = args.geometry;
  bool known = false;
  with_short_filter(g, [&]<class Filter>(Filter) {
    known = has_short_indices(g) && shared_bytes<Filter, 4>(g) <= kMostSharedBytes && g.out_channels <= 65535;
    if (!known) return;
    const auto slices = static_cast<int>(std::max<std::int64_t>(1, lib::ceil_div(pairs_of(g), pairs_of_slice(g))));
    lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
      g.out_channels <= 16 ? launch<T, Filter, 2>(stream, args, slices) : launch<T, Filter, 4>(stream, args, slices);
    });
    lib::sum_slices(stream, static_cast<float*>(args.workspace), slices, g.weight_elements(), args.dw, args.accumulate,
                    args.partial_sums);
  });
  return known;
}

}  // namespace short_filters

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
