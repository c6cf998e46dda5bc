// SPDX-License-Identifier: Apache-2.0
// Idea: tensor cores through the interface of the language, nvcuda::wmma: a warp multiplies fragments of 16 x 16, and
//   does not ask which thread holds which element.
// Mapping: a block of 4 warps per tile of 64 x 64 sums, a warp per quarter of it, 2 x 2 fragments; blockIdx.z: the
//   share of the depth (wgrad). Operands stay as they lie in memory: the fragment's layout says along what.
// Traffic and bound: A is read columns / 64 times, B rows / 64 times, from the second-level cache; 32 operations for
//   each byte that comes to shared memory. Bound by waiting: a block loads, then multiplies.
// Gains over the step before: 8,192 operations an instruction; 16 bits instead of 32 in shared memory.
// Still slow because: loads go through registers and overlap with other blocks only; nobody may know where a sum is, so
//   that sums go through shared memory to be written.
// Limits: f16 and bf16; those of Patches; 4 million columns. An infinity meets the padding's zeros as NaN.

#include <type_traits>

#include "kernels/ops/conv2d/products.cuh"
#include "kernels/ops/conv2d/shares.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

namespace wmma = nvcuda::wmma;

constexpr TileShape kTile{.rows = 64, .columns = 64, .depth = 32};
constexpr int kThreads = 128;
[[maybe_unused]] constexpr int kBlocksOfProcessor = 6;  // with more, registers would be spilled
constexpr int kFragment = 16;
constexpr int kWarpExtent = 32;  // rows, and columns, of a warp
constexpr int kWarpsAcross = kTile.columns / kWarpExtent;
constexpr int kEach = kWarpExtent / kFragment;  // fragments of a warp each way
constexpr int kSumsPitch = kTile.columns + 4;   // a multiple of 16 bytes, but not of 128

/// A fragment's layout: rows first where the lines in memory are rows.
template <bool kByRow>
using Layout = std::conditional_t<kByRow, wmma::row_major, wmma::col_major>;
template <class Tile>
using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, typename Tile::T, Layout<Tile::kByOuter>>;
template <class Tile>
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, typename Tile::T, Layout<!Tile::kByOuter>>;
using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

__device__ void copy_at_once(void* to, const void* from) {
  simt::store_as(static_cast<char*>(to), simt::load_as<uint4>(static_cast<const char*>(from)));
}

template <class TileA, class TileB>
__device__ void multiply(Sums (&sums)[kEach][kEach], const TileA& tile_a, const TileB& tile_b, int row, int column) {
  for (int k = 0; k < kTile.depth; k += kFragment) {
    FragmentA<TileA> a[kEach];
    FragmentB<TileB> b[kEach];
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kEach; ++i) {
      wmma::load_matrix_sync(a[i], tile_a.element(row + i * kFragment, k), TileA::kPitch);
      wmma::load_matrix_sync(b[i], tile_b.element(column + i * kFragment, k), TileB::kPitch);
    }
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kEach; ++i) {
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < kEach; ++j) wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
    }
  }
}

template <class C, class P>
__global__ void __launch_bounds__(kThreads, kBlocksOfProcessor)
    conv2d_product_wmma_kernel(SIMT_GRID_CONST(P) product, C* __restrict__ c, int share_depth) {
  using TileA = OperandTile<decltype(P::a), kTile.rows, kTile.depth>;
  using TileB = OperandTile<decltype(P::b), kTile.columns, kTile.depth>;
  SIMT_SHARED(TileA, tile_a);
  SIMT_SHARED(TileB, tile_b);
  SIMT_SHARED(float[kTile.rows * kSumsPitch], tile_c);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / kWarpsAcross * kWarpExtent;
  const int warp_column = warp % kWarpsAcross * kWarpExtent;
  const int first_row = static_cast<int>(blockIdx.x) * kTile.rows;
  const int first_column = static_cast<int>(blockIdx.y) * kTile.columns;
  const int begin = static_cast<int>(blockIdx.z) * share_depth;
  const int end = product.depth - begin < share_depth ? product.depth : begin + share_depth;
  Sums sums[kEach][kEach];
  for (auto& row : sums)
    for (Sums& fragment : row) wmma::fill_fragment(fragment, 0.0f);
  for (int depth = begin; depth < end; depth += kTile.depth) {
    tile_a.template load<kThreads>(product.a, first_row, depth, copy_at_once);
    tile_b.template load<kThreads>(product.b, first_column, depth, copy_at_once);
    __syncthreads();  // the tiles are whole
    multiply(sums, tile_a, tile_b, warp_row, warp_column);
    __syncthreads();  // all reads are done: the next ones may be stored
  }
  for (int i = 0; i < kEach; ++i)
    for (int j = 0; j < kEach; ++j)
      wmma::store_matrix_sync(tile_c + (warp_row + i * kFragment) * kSumsPitch + warp_column + j * kFragment,
                              sums[i][j], kSumsPitch, wmma::mem_row_major);
  __syncthreads();  // all sums are in the tile
  C* share = c + std::int64_t{blockIdx.z} * product.rows * product.columns;
  for (int i = static_cast<int>(threadIdx.x); i < kTile.rows * kTile.columns; i += kThreads) {
    const int row = i / kTile.columns;
    const int column = i % kTile.columns;
    if (first_row + row < product.rows && first_column + column < product.columns)
      share[std::int64_t{first_row + row} * product.columns + first_column + column] =
          lib::from_f32<C>(tile_c[row * kSumsPitch + column]);
  }
}

struct Step {
  static void with_type(DType dtype, auto visit) { lib::with_half(dtype, visit); }
  static TileShape wgrad_tile(const Geometry&) { return kTile; }

  template <class C, class P>
  static void enqueue(Stream& stream, const P& product, C* c, const Shares& shares) {
    const simt::Config config{.grid = grid_of(product.rows, product.columns, kTile, shares), .block = dim3(kThreads)};
    simt::launch<conv2d_product_wmma_kernel<C, P>>(stream, config, product, c, shares.depth);
  }
};
using Passes = ProductPasses<Step>;

}  // namespace

Variant wmma_tiles() {
  return {"wmma",      Passes::forward, Passes::dgrad, Passes::wgrad, Passes::workspace_bytes, lib::supports_cuda_half,
          lib::is_half};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
