// SPDX-License-Identifier: Apache-2.0
// Idea: the tensor cores' own instructions, in a multi-stage pipeline (lib/mma_pipeline.cuh): cp.async copies the next
//   two k-tiles into shared memory while this one is multiplied, without a detour through registers; ldmatrix loads
//   fragments from there, transposing where K is not contiguous; sums go to C from registers.
// Mapping: each block computes a tile of C, each warp 32 rows of it; blockIdx.z: the split-K slice (wgrad). Tiles are
//   128 x 64, 128 x 32 for few columns, half as high if that fills idle multiprocessors; in wgrad, where C is
//   small, 64 x 64, or 32 x 32 for one warp.
// Traffic and bound: A is read columns / 64 times, B rows / 128 times, from the L2 cache; with 64 columns, 43
//   operations for each byte that comes to shared memory. Bound by the tensor cores where rows of the operands are
//   aligned and K is long; by index arithmetic for a first convolution, whose elements come one by one.
// Gains over the step before: copies overlap products; no bank conflicts; sums go to memory from registers.
// Still slow because: mma.sync cannot keep a Hopper's tensor cores as busy as wgmma does; of 288 columns the last tile
//   is half empty; elements of rows that are not multiples of 16 bytes come one by one, and are waited for.
// Limits: f16 and bf16; those of Patches; 2 million columns. An infinity in w or dy times the padding's zeros is NaN.

#include <type_traits>

#include "kernels/ops/conv2d/mma_product.cuh"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <class C>
struct alignas(2 * sizeof(C)) Pair {
  C elements[2];
};

/// Calls visit(row, column, even, odd) for this thread's pairs of neighbouring sums, which count from the block's tile.
template <class Tile, class Visit>
__device__ void for_each_pair(const typename Tile::Accumulators& sums, Visit visit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = static_cast<int>(threadIdx.x) / 32 * Tile::kWarpRows;
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < Tile::kWarpRows / 16; ++i) {
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < Tile::kColumns / 8; ++j) {
      SIMT_UNROLL_ON_GPU
      for (int e = 0; e < 4; e += 2) {
        const simt::Position at = simt::mma_position_in_c(lane, e);
        visit(first_row + 16 * i + at.row, 8 * j + at.column, sums.sums[i][j][e], sums.sums[i][j][e + 1]);
      }
    }
  }
}

template <class Tile, class C, class P>
__global__ void __launch_bounds__(Tile::kThreads)
    conv2d_product_mma_kernel(SIMT_GRID_CONST(P) product, C* __restrict__ c, int k_of_slice) {
  const int first_row = static_cast<int>(blockIdx.x) * Tile::kRows;
  const int first_column = static_cast<int>(blockIdx.y) * Tile::kColumns;
  const lib::KOfBlock k(product.k, k_of_slice);
  typename Tile::Accumulators sums;
  add_mma_product<Tile>(sums, product.a, product.b, first_row, first_column, k.begin, k.end);
  C* slice = c + std::int64_t{blockIdx.z} * product.rows * product.columns;
  const bool in_pairs = product.columns % 2 == 0 && reinterpret_cast<std::uintptr_t>(slice) % sizeof(Pair<C>) == 0;
  for_each_pair<Tile>(sums, [&](int tile_row, int tile_column, float even, float odd) {
    const int row = first_row + tile_row;
    const int column = first_column + tile_column;
    if (row >= product.rows || column >= product.columns) return;
    C* to = slice + std::int64_t{row} * product.columns + column;
    if (in_pairs) {
      simt::store_as(to, Pair<C>{{lib::from_f32<C>(even), lib::from_f32<C>(odd)}});
      return;
    }
    to[0] = lib::from_f32<C>(even);
    if (column + 1 < product.columns) to[1] = lib::from_f32<C>(odd);
  });
}

template <class Tile, class C, class P>
void launch(Stream& stream, const P& product, C* c, int slices) {
  const simt::Config config{.grid = grid_of(product.rows, product.columns, Tile::kShape, slices),
                            .block = dim3(Tile::kThreads)};
  simt::launch<conv2d_product_mma_kernel<Tile, C, P>>(stream, config, product, c,
                                                      k_of_slice(product.k, Tile::kShape, slices));
}

using LowNarrow = MmaTile<2, 32, 32>;

/// With low tiles if high ones would leave half of a large GPU's multiprocessors idle.
template <class High, class Low, class C, class P>
void launch_high(Stream& stream, const P& product, C* c) {
  constexpr std::int64_t kMultiprocessors = 132;
  const std::int64_t blocks = lib::ceil_div(product.rows, High::kRows) * lib::ceil_div(product.columns, High::kColumns);
  2 * blocks <= kMultiprocessors ? launch<Low>(stream, product, c, 1) : launch<High>(stream, product, c, 1);
}

struct Step {
  static void with_type(DType dtype, auto visit) { lib::with_half(dtype, visit); }

  static TileShape wgrad_tile(const Geometry& g) {
    return is_small(g.out_channels, g.filter_elements()) ? Small::kShape : Long::kShape;
  }

  /// Only the slices of wgrad are f32.
  template <class C, class P>
  static void enqueue(Stream& stream, const P& product, C* c, int slices) {
    if constexpr (std::is_same_v<C, float>)
      is_small(product.rows, product.columns) ? launch<Small>(stream, product, c, slices)
                                              : launch<Long>(stream, product, c, slices);
    else
      product.columns <= Narrow::kColumns ? launch_high<Narrow, LowNarrow>(stream, product, c)
                                          : launch_high<Wide, Long>(stream, product, c);
  }
};
using Passes = ProductPasses<Step>;

}  // namespace

Variant mma() {
  return {"mma",       Passes::forward, Passes::dgrad, Passes::wgrad, Passes::workspace_bytes, lib::supports_cuda_half,
          lib::is_half};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
