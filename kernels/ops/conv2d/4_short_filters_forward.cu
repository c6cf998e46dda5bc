// SPDX-License-Identifier: Apache-2.0
// Idea: filters with few weights (a first convolution) as a small matrix product: a row is a position with what it
//   sees, a column a filter. For 3 x 3 weights K is 16, of which 9 are not 0. A row of the kernel is so many pairs of
//   neighbours, and the rows of images are staged as such pairs, so that a register of the operand is one word of shared
//   memory, at a distance from a position's first word that never changes. The bias is what the product is added to.
// Mapping: a warp multiplies 2 x 16 positions by 16 or 32 filters, whose weights stay in registers. A block stages the
//   image rows under 256 positions of the batch at a time. The columns are in such an order that a thread ends up with
//   four or eight neighbouring filters of a position: one store. blockIdx.y: the filters.
// Traffic and bound: x is read once for 16 or 32 filters, y written in whole sectors. Bound by memory.
// Gains over the step before (4_mma.cu): a patch has no addresses of its own, and no k-tile is mostly empty.
// Still slow because: an input costs as many instructions to stage as an output to compute.
// Limits: filters of with_short_filter; stride 1; 2^30 positions and rows of images; image rows that fit shared memory.
//   An infinity or a NaN in w times the padding's zeros is NaN.

#include <algorithm>
#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/lib/tensor_core.h"
#include "kernels/ops/conv2d/short_filters.cuh"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kTile = 16;  // positions that a warp multiplies at once
constexpr int kTilesOfWarp = 2;
constexpr int kStaged = kWarps * kTilesOfWarp * kTile;
constexpr std::int64_t kMostBlocks = 264;  // two for each multiprocessor of a large GPU

using Grid = WindowGrid<1, 1>;
template <class Filter>
using Rows = StagedRows<Filter, Grid, 1>;

template <class T>
using Images = StoredImages<T, T>;

struct Shape {
  StagedShape<Grid> rows;
  int filters;
  bool aligned;  // those of a thread are one aligned access
};

/// The K dimension of the product: the pairs of a kernel row, those of the next row, and zeros up to whole steps.
template <class Filter>
struct PatchPairs {
  static constexpr int kOfRow = (Filter::kRow + 1) / 2;
  static constexpr int kPairs = Filter::kKernel * kOfRow;
  static constexpr int kSteps = (kPairs + 7) / 8;  // of K = 16
  static constexpr int kOfThread = 2 * kSteps;

  /// Pair i of a thread, the same in both operands. Of those that fill up the last step: as many as kPairs or more.
  __device__ static int pair(int i) { return 4 * i + static_cast<int>(threadIdx.x) % 4; }
  __device__ static int row(int pair) { return pair / kOfRow; }
  __device__ static int column(int pair) { return pair % kOfRow * 2; }

  int words[kOfThread];            // from a position's first word
  std::uint32_t masks[kOfThread];  // of inputs that weights see

  __device__ explicit PatchPairs(int pitch) {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kOfThread; ++i) {
      const int which = pair(i);
      const bool exists = which < kPairs;
      words[i] = exists ? row(which) * pitch + column(which) : 0;
      masks[i] = !exists ? 0 : column(which) + 1 < Filter::kRow ? ~0u : 0xffffu;
    }
  }
};

/// Weights of a thread's columns: filter lane / 4 of each of kGroups groups of eight.
template <class T, class Filter, int kGroups>
struct Columns {
  using Pairs = PatchPairs<Filter>;
  std::uint32_t registers[kGroups][Pairs::kOfThread];

  /// The filter that column `column` of group `group` is.
  __device__ static int filter(int group, int column) { return column / 2 * (2 * kGroups) + 2 * group + column % 2; }

  __device__ void load(const T* w, int filters) {
    const int column = static_cast<int>(threadIdx.x) % 32 / 4;
    SIMT_UNROLL_ON_GPU
    for (int group = 0; group < kGroups; ++group) {
      const int which = filter(group, column);
      const bool has_filter = which < filters;
      const T* const weights = w + (has_filter ? which : 0) * Filter::kWeights;
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < Pairs::kOfThread; ++i) {
        const int pair = Pairs::pair(i), at = Pairs::column(pair);
        const auto weight = [&](int k) {
          const bool exists = has_filter && pair < Pairs::kPairs && k < Filter::kRow;
          const T value = weights[exists ? Pairs::row(pair) * Filter::kRow + k : 0];  // selected, not branched to
          return exists ? value : lib::from_f32<T>(0.0f);
        };
        registers[group][i] = lib::pair_of<T>(weight(at), weight(at + 1));
      }
    }
  }
};

/// 2 * kGroups outputs of a position.
template <class T, int kGroups>
__device__ void store(T* y, const std::uint32_t (&pairs)[kGroups], int filters, bool aligned) {
  if (aligned) {
    if constexpr (kGroups == 4)
      simt::store_as(y, uint4{pairs[0], pairs[1], pairs[2], pairs[3]});
    else
      simt::store_as(y, std::uint64_t{pairs[1]} << 32 | pairs[0]);  // a uint2 would be two stores
    return;
  }
  T elements[2 * kGroups];
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < kGroups; ++i) simt::store_as(elements + 2 * i, pairs[i]);
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < 2 * kGroups; ++i)
    if (i < filters) y[i] = elements[i];
}

struct alignas(16) Shared {
  unsigned bytes[kStaged];  // from the first word of the rows to a position's

  __device__ std::uint32_t* rows() { return reinterpret_cast<std::uint32_t*>(this + 1); }
};

template <class T, class Filter, int kGroups>
__global__ void __launch_bounds__(kThreads)
    conv2d_short_forward_kernel(SIMT_GRID_CONST(Shape) s, SIMT_GRID_CONST(Images<T>) images, const T* __restrict__ w,
                                const T* __restrict__ bias, bool relu, T* __restrict__ y) {
  SIMT_DYNAMIC_SHARED(Shared, shared);
  const Grid& grid = s.rows.grid;
  const int block_filter = static_cast<int>(blockIdx.y) * 8 * kGroups;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int first_filter = block_filter + lane % 4 * (2 * kGroups);  // that the thread stores
  Columns<T, Filter, kGroups> columns;
  columns.load(w + std::int64_t{block_filter} * Filter::kWeights, s.filters - block_filter);
  float biases[kGroups][4] = {};
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < 2 * kGroups; ++i)
    if (bias && first_filter + i < s.filters)
      biases[i / 2][i % 2] = biases[i / 2][2 + i % 2] = lib::to_f32(bias[first_filter + i]);
  Rows<Filter> staged{shared->rows(), s.rows.pitch, 0};
  const PatchPairs<Filter> pairs(staged.pitch);
  for (int begin = static_cast<int>(blockIdx.x) * kStaged; begin < grid.windows;
       begin += static_cast<int>(gridDim.x) * kStaged) {
    __syncthreads();  // the rows before are not needed any more
    const int last = (grid.windows - begin < kStaged ? grid.windows - begin : kStaged) - 1;
    staged.first_row = grid.row(grid.position(begin));
    staged.template load<T, kThreads>(images, s.rows, grid.row(grid.position(begin + last)) + Filter::kKernel - 1);
    const auto thread = static_cast<int>(threadIdx.x);
    shared->bytes[thread] = staged.byte(grid, grid.position(begin + (thread < last ? thread : last)));
    __syncthreads();  // the rows are there
    SIMT_UNROLL_ON_GPU
    for (int tile = 0; tile < kTilesOfWarp; ++tile) {
      const int first = (warp * kTilesOfWarp + tile) * kTile + lane / 4;  // and eight further
      std::uint32_t inputs[PatchPairs<Filter>::kSteps][4];
      SIMT_UNROLL_ON_GPU
      for (int which = 0; which < 2; ++which) {
        const char* const position = reinterpret_cast<const char*>(staged.words) + shared->bytes[first + 8 * which];
        SIMT_UNROLL_ON_GPU
        for (int i = 0; i < PatchPairs<Filter>::kOfThread; ++i)
          inputs[i / 2][i % 2 * 2 + which] =
              reinterpret_cast<const std::uint32_t*>(position)[pairs.words[i]] & pairs.masks[i];
      }
      std::uint32_t outputs[2][kGroups];
      SIMT_UNROLL_ON_GPU
      for (int group = 0; group < kGroups; ++group) {
        float sums[4];
        SIMT_UNROLL_ON_GPU
        for (int step = 0; step < PatchPairs<Filter>::kSteps; ++step) {
          const std::uint32_t(&weights)[PatchPairs<Filter>::kOfThread] = columns.registers[group];
          lib::mma_m16n8k16<T>(sums, inputs[step], weights[2 * step], weights[2 * step + 1],
                               step == 0 ? biases[group] : sums);
        }
        SIMT_UNROLL_ON_GPU
        for (int which = 0; which < 2; ++which) {
          const float even = sums[2 * which], odd = sums[2 * which + 1];
          outputs[which][group] = relu ? lib::relu_pair<T>(even, odd) : lib::pair_of<T>(even, odd);
        }
      }
      SIMT_UNROLL_ON_GPU
      for (int which = 0; which < 2; ++which) {
        const int position = begin + first + 8 * which;
        if (position < grid.windows && first_filter < s.filters)
          store(y + std::int64_t{position} * s.filters + first_filter, outputs[which], s.filters - first_filter,
                s.aligned);
      }
    }
  }
}

template <class Filter>
std::size_t shared_bytes(const Geometry& g) {
  const std::int64_t words = Rows<Filter>::words_of(g, kStaged, g.out_height(), g.out_width());
  return sizeof(Shared) + static_cast<std::size_t>(words) * sizeof(std::uint32_t);
}

template <class T, class Filter, int kGroups>
void launch(Stream& stream, const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  const Images<T> images{static_cast<const T*>(args.x),
                         lib::narrow<int>("conv2d", "elements of an image", g.in_height * g.in_width * g.in_channels)};
  constexpr std::uintptr_t kVector = 2 * kGroups * sizeof(T);
  const Shape shape{
      .rows = Rows<Filter>::shape(g, g.out_height(), g.out_width(), args.x, sizeof(T)),
      .filters = lib::narrow<int>("conv2d", "out_channels", g.out_channels),
      .aligned = g.out_channels % (2 * kGroups) == 0 && reinterpret_cast<std::uintptr_t>(args.y) % kVector == 0};
  const std::int64_t positions = g.batch * g.out_height() * g.out_width();
  const std::int64_t filter_blocks = lib::ceil_div(g.out_channels, 8 * kGroups);
  const std::int64_t blocks =
      std::min(lib::ceil_div(positions, kStaged), std::max<std::int64_t>(1, kMostBlocks / filter_blocks));
  const simt::Config config{.grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(filter_blocks)),
                            .block = dim3(kThreads),
                            .shared_bytes = shared_bytes<Filter>(g)};
  simt::launch<conv2d_short_forward_kernel<T, Filter, kGroups>>(
      stream, config, shape, images, static_cast<const T*>(args.w), static_cast<const T*>(args.bias), args.relu,
      static_cast<T*>(args.y));
}

}  // namespace

namespace short_filters {

bool forward(Stream& stream, const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  bool known = false;
  with_short_filter(g, [&]<class Filter>(Filter) {
    known = has_short_indices(g) && shared_bytes<Filter>(g) <= kMostSharedBytes && g.out_channels <= 65535;
    if (!known) return;
    lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
      g.out_channels <= 16 ? launch<T, Filter, 2>(stream, args) : launch<T, Filter, 4>(stream, args);
    });
  });
  return known;
}

}  // namespace short_filters

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
