// SPDX-License-Identifier: Apache-2.0
// Idea: the tensor cores' own instructions, in a multi-stage pipeline (lib/mma_pipeline.cuh): cp.async copies the next
//   two k-tiles into shared memory while this one is multiplied, without a detour through registers; ldmatrix loads
//   fragments from there, transposing where K is not contiguous; sums go to C from registers.
// Mapping: each block computes a tile of C, each warp 32 rows of it; blockIdx.z: the split-K slice (wgrad). Tiles are
//   128 x 64, 128 x 32 for few columns; in wgrad, where C is small, 64 x 64, or 32 x 32 for one warp.
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

template <class Tile, class C, class P>
__global__ void __launch_bounds__(Tile::kThreads)
    conv2d_product_mma_kernel(SIMT_GRID_CONST(P) product, C* __restrict__ c, int k_of_slice) {
  const int first_row = static_cast<int>(blockIdx.x) * Tile::kRows;
  const int first_column = static_cast<int>(blockIdx.y) * Tile::kColumns;
  const lib::KOfBlock k(product.k, k_of_slice);
  typename Tile::Accumulators sums;
  add_mma_product<Tile>(sums, product.a, product.b, first_row, first_column, k.begin, k.end);
  C* slice = c + std::int64_t{blockIdx.z} * product.rows * product.columns;
  for_each_sum<Tile>(sums, [&](int tile_row, int tile_column, float sum) {
    const int row = first_row + tile_row;
    const int column = first_column + tile_column;
    if (row < product.rows && column < product.columns)
      slice[std::int64_t{row} * product.columns + column] = lib::from_f32<C>(sum);
  });
}

template <class Tile, class C, class P>
void launch(Stream& stream, const P& product, C* c, int slices) {
  const simt::Config config{.grid = grid_of(product.rows, product.columns, Tile::kShape, slices),
                            .block = dim3(Tile::kThreads)};
  simt::launch<conv2d_product_mma_kernel<Tile, C, P>>(stream, config, product, c,
                                                      k_of_slice(product.k, Tile::kShape, slices));
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
      product.columns <= Narrow::kColumns ? launch<Narrow>(stream, product, c, slices)
                                          : launch<Wide>(stream, product, c, slices);
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
