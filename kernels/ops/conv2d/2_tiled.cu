// SPDX-License-Identifier: Apache-2.0
// Idea: implicit GEMM. Each pass is a matrix product of views (products.cuh); a block computes a tile of it. Tiles of
//   both operands go through shared memory once and serve every thread of the block; a thread keeps 8 x 8 sums in
//   registers, so that 16 numbers from shared memory serve 64 multiplications.
// Mapping: a block of 128 threads per tile of 128 rows and 64 columns; thread (t / 8, t % 8) has rows and columns in
//   fours, 64 rows and 32 columns apart, so that a warp reads neighbouring fours. blockIdx.z: the share of the depth
//   (wgrad).
// Traffic and bound: A is read columns / 64 times, B rows / 128 times, mostly from the second-level cache; 21
//   operations for each byte of a tile in f32. Bound by the floating-point units, and by shared memory behind them.
// Gains over the step before: a number that is loaded serves a tile instead of a strip; wgrad fills the GPU.
// Still slow because: no tensor cores; nothing is loaded while a tile is being multiplied but by other blocks.
// Limits: those of Patches; 4 million columns.

#include "kernels/ops/conv2d/shares.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// Shares are added up in order, without atomics, so that every run gives the same bits; where there are many, groups
/// of them first, each into its first member. A thread per result and group walks through the shares, coalesced, from
/// the cache that they were just written to.
constexpr int kGroup = 32;

__global__ void conv2d_group_shares_kernel(float* __restrict__ shares, int count, std::int64_t elements) {
  const auto width = static_cast<std::size_t>(elements);
  const std::int64_t groups = tiles_of(count, kGroup);
  for (std::size_t at : simt::grid_range(static_cast<std::size_t>(groups) * width)) {
    const std::size_t first = at / width * kGroup;
    const std::size_t left = static_cast<std::size_t>(count) - first;
    float* column = shares + first * width + at % width;
    float sum = 0;
    for (std::size_t s = 0; s < (left < kGroup ? left : kGroup); ++s) sum += column[s * width];
    *column = sum;
  }
}

/// Of every `step`-th share.
__global__ void conv2d_add_shares_kernel(const float* __restrict__ shares, int count, int step, std::int64_t elements,
                                         float* __restrict__ to, bool accumulate) {
  for (std::size_t i : simt::grid_range(static_cast<std::size_t>(elements))) {
    float sum = 0;
    for (int s = 0; s < count; s += step) sum += shares[static_cast<std::size_t>(s * elements) + i];
    to[i] = accumulate ? to[i] + sum : sum;
  }
}

}  // namespace

void add_shares(Stream& stream, float* shares, int count, std::int64_t elements, float* to, bool accumulate) {
  const int step = count > kGroup ? kGroup : 1;
  if (step > 1)
    simt::launch_flat<conv2d_group_shares_kernel>(
        stream, simt::grid_for(stream, static_cast<std::size_t>(tiles_of(count, kGroup) * elements)), shares, count,
        elements);
  simt::launch_flat<conv2d_add_shares_kernel>(stream, simt::grid_for(stream, static_cast<std::size_t>(elements)),
                                              shares, count, step, elements, to, accumulate);
}

namespace {

constexpr TileShape kTile{.rows = 128, .columns = 64, .depth = 16};
constexpr int kThreads = 128;
constexpr int kFour = 4;           // neighbours that a thread loads, and multiplies, together
constexpr int kPad = 4;            // keeps rows of a tile in shared memory apart by other than a multiple of all banks
constexpr int kSums = 2 * kFour;   // of a thread each way
constexpr int kThreadColumns = 8;  // threads side by side

template <class T>
struct alignas(kFour * sizeof(T)) Four {
  T values[kFour];
};

template <class Operand>
__device__ Four<float> load_four(const Operand& from, const typename Operand::Line& line, int first) {
  using T = typename Operand::Element;
  Four<float> four = {};
  if (from.wide) {
    if (const T* here = from.at(line, first)) {
      const auto loaded = simt::load_as<Four<T>>(here);
      for (int i = 0; i < kFour; ++i) four.values[i] = lib::to_f32(loaded.values[i]);
    }
    return four;
  }
  for (int i = 0; i < kFour; ++i)
    if (const T* here = from.at(line, first + i)) four.values[i] = lib::to_f32(*here);
  return four;
}

/// tile[depth][outer], whichever of the two the operand's lines run along.
template <int kOuter, class Operand>
__device__ void load_tile(float (&tile)[kTile.depth][kOuter + kPad], const Operand& from, int first_outer,
                          int first_depth) {
  constexpr bool kByOuter = Operand::kLines == Lines::outer;
  constexpr int kFoursOfLine = (kByOuter ? kTile.depth : kOuter) / kFour;
  for (int i = static_cast<int>(threadIdx.x); i < kOuter * kTile.depth / kFour; i += kThreads) {
    const int line = i / kFoursOfLine;
    const int position = i % kFoursOfLine * kFour;
    if constexpr (kByOuter) {
      const Four<float> four = load_four(from, from.line(first_outer + line), first_depth + position);
      for (int j = 0; j < kFour; ++j) tile[position + j][line] = four.values[j];
    } else {
      const Four<float> four = load_four(from, from.line(first_depth + line), first_outer + position);
      simt::store_as(&tile[line][position], four);
    }
  }
}

/// Where the i-th of a thread's sums lies in the tile, along an extent that the threads share out in fours.
__device__ int place_of(int thread, int i, int extent) { return i / kFour * (extent / 2) + thread * kFour + i % kFour; }

template <class C, class P>
__global__ void __launch_bounds__(kThreads)
    conv2d_product_tiled_kernel(SIMT_GRID_CONST(P) product, C* __restrict__ c, int share_depth) {
  using TileA = float[kTile.depth][kTile.rows + kPad];
  using TileB = float[kTile.depth][kTile.columns + kPad];
  SIMT_SHARED(TileA, tile_a);
  SIMT_SHARED(TileB, tile_b);
  const int thread_row = static_cast<int>(threadIdx.x) / kThreadColumns;
  const int thread_column = static_cast<int>(threadIdx.x) % kThreadColumns;
  const int first_row = static_cast<int>(blockIdx.x) * kTile.rows;
  const int first_column = static_cast<int>(blockIdx.y) * kTile.columns;
  const int begin = static_cast<int>(blockIdx.z) * share_depth;
  const int end = product.depth - begin < share_depth ? product.depth : begin + share_depth;
  float sums[kSums][kSums] = {};
  for (int depth = begin; depth < end; depth += kTile.depth) {
    load_tile<kTile.rows>(tile_a, product.a, first_row, depth);
    load_tile<kTile.columns>(tile_b, product.b, first_column, depth);
    __syncthreads();  // the tiles are whole
    SIMT_UNROLL_ON_GPU
    for (int k = 0; k < kTile.depth; ++k) {
      Four<float> a[kSums / kFour], b[kSums / kFour];
      SIMT_UNROLL_ON_GPU
      for (int f = 0; f < kSums / kFour; ++f) {
        a[f] = simt::load_as<Four<float>>(&tile_a[k][place_of(thread_row, f * kFour, kTile.rows)]);
        b[f] = simt::load_as<Four<float>>(&tile_b[k][place_of(thread_column, f * kFour, kTile.columns)]);
      }
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kSums; ++i) {
        SIMT_UNROLL_ON_GPU
        for (int j = 0; j < kSums; ++j) sums[i][j] += a[i / kFour].values[i % kFour] * b[j / kFour].values[j % kFour];
      }
    }
    __syncthreads();  // all reads are done: the next ones may be stored
  }
  C* share = c + std::int64_t{blockIdx.z} * product.rows * product.columns;
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < kSums; ++i) {
    const int row = first_row + place_of(thread_row, i, kTile.rows);
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < kSums; ++j) {
      const int column = first_column + place_of(thread_column, j, kTile.columns);
      if (row < product.rows && column < product.columns)
        share[std::int64_t{row} * product.columns + column] = lib::from_f32<C>(sums[i][j]);
    }
  }
}

struct Step {
  static void with_type(DType dtype, auto visit) { lib::with_element(dtype, visit); }
  static TileShape wgrad_tile(const Geometry&) { return kTile; }

  template <class C, class P>
  static void enqueue(Stream& stream, const P& product, C* c, const Shares& shares) {
    const simt::Config config{.grid = grid_of(product.rows, product.columns, kTile, shares), .block = dim3(kThreads)};
    simt::launch<conv2d_product_tiled_kernel<C, P>>(stream, config, product, c, shares.depth);
  }
};
using Passes = ProductPasses<Step>;

}  // namespace

Variant tiled() {
  return {"tiled",         Passes::forward,         Passes::dgrad,
          Passes::wgrad,   Passes::workspace_bytes, lib::supports_cuda_floating,
          lib::is_floating};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
