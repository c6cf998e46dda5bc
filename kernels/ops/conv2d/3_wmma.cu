// SPDX-License-Identifier: Apache-2.0
// Idea: tensor cores through CUDA C++'s interface, nvcuda::wmma: a warp multiplies fragments of 16 x 16, whatever the
//   layout of their elements over its lanes.
// Mapping: each block of 4 warps computes 64 x 64 of C, each warp a quarter of it, 2 x 2 fragments; blockIdx.z: the
//   split-K slice (wgrad). Operands stay K-major or not as they are in memory: the fragment's layout says which.
// Traffic and bound: A is read columns / 64 times, B rows / 64 times, from the L2 cache; 32 operations for each byte
//   that comes to shared memory. Bound by waiting: a block loads, then multiplies.
// Gains over the step before: 8,192 operations an instruction; 16 bits instead of 32 in shared memory.
// Still slow because: loads go through registers and overlap with other blocks only; WMMA does not say which lane holds
//   which sum, so that sums go through shared memory to be written.
// Limits: f16 and bf16; those of Patches; 4 million columns. An infinity times the padding's zeros is NaN.

#include <type_traits>

#include "kernels/ops/conv2d/products.cuh"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

namespace wmma = nvcuda::wmma;

constexpr TileShape kTile{.rows = 64, .columns = 64, .k = 32};
constexpr int kThreads = 128;
[[maybe_unused]] constexpr int kBlocksOfMultiprocessor = 6;  // with more, registers would be spilled
constexpr int kFragment = 16;
constexpr int kWarpExtent = 32;  // rows, and columns, of a warp
constexpr int kWarpsAcross = kTile.columns / kWarpExtent;
constexpr int kEach = kWarpExtent / kFragment;  // fragments of a warp each way
constexpr int kSumsPitch = kTile.columns + 4;   // a multiple of 16 bytes, but not of 128

template <bool kRowMajor>
using Layout = std::conditional_t<kRowMajor, wmma::row_major, wmma::col_major>;
template <class Tile>
using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, typename Tile::Element, Layout<Tile::kKMajor>>;
template <class Tile>
using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 16, typename Tile::Element, Layout<!Tile::kKMajor>>;
using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

__device__ void copy_at_once(void* to, const void* from) {
  simt::store_as(static_cast<char*>(to), simt::load_as<uint4>(static_cast<const char*>(from)));
}

/// The first of 16 x 16 elements.
template <class Tile>
__device__ const typename Tile::Element* element(const Tile& tile, int mn, int k) {
  return Tile::kKMajor ? tile.at(mn, k) : tile.at(k, mn);
}

template <class TileA, class TileB>
__device__ void multiply(Sums (&sums)[kEach][kEach], const TileA& tile_a, const TileB& tile_b, int row, int column) {
  for (int k = 0; k < kTile.k; k += kFragment) {
    FragmentA<TileA> a[kEach];
    FragmentB<TileB> b[kEach];
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kEach; ++i) {
      wmma::load_matrix_sync(a[i], element(tile_a, row + i * kFragment, k), TileA::kPitch);
      wmma::load_matrix_sync(b[i], element(tile_b, column + i * kFragment, k), TileB::kPitch);
    }
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kEach; ++i) {
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < kEach; ++j) wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
    }
  }
}

template <class C, class P, class E>
__global__ void __launch_bounds__(kThreads, kBlocksOfMultiprocessor)
    conv2d_product_wmma_kernel(SIMT_GRID_CONST(P) product, C* __restrict__ c, E epilogue, int k_of_slice) {
  using TileA = OperandTile<decltype(P::a), kTile.rows, kTile.k>;
  using TileB = OperandTile<decltype(P::b), kTile.columns, kTile.k>;
  SIMT_SHARED(TileA, tile_a);
  SIMT_SHARED(TileB, tile_b);
  SIMT_SHARED(float[kTile.rows * kSumsPitch], tile_c);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / kWarpsAcross * kWarpExtent;
  const int warp_column = warp % kWarpsAcross * kWarpExtent;
  const int first_row = static_cast<int>(blockIdx.x) * kTile.rows;
  const int first_column = static_cast<int>(blockIdx.y) * kTile.columns;
  const lib::KOfBlock k_range(product.k, k_of_slice);
  Sums sums[kEach][kEach];
  for (auto& row : sums)
    for (Sums& fragment : row) wmma::fill_fragment(fragment, 0.0f);
  TileLoader<TileA, kThreads> a_loader(product.a, first_row);
  TileLoader<TileB, kThreads> b_loader(product.b, first_column);
  for (int k = k_range.begin; k < k_range.end; k += kTile.k) {
    a_loader.load(tile_a, product.a, k, copy_at_once);
    b_loader.load(tile_b, product.b, k, copy_at_once);
    __syncthreads();  // both tiles are complete
    multiply(sums, tile_a, tile_b, warp_row, warp_column);
    __syncthreads();  // all reads are done before the next k-tile overwrites them
  }
  for (int i = 0; i < kEach; ++i)
    for (int j = 0; j < kEach; ++j)
      wmma::store_matrix_sync(tile_c + (warp_row + i * kFragment) * kSumsPitch + warp_column + j * kFragment,
                              sums[i][j], kSumsPitch, wmma::mem_row_major);
  __syncthreads();  // all sums are in the tile
  C* slice = c + std::int64_t{blockIdx.z} * product.rows * product.columns;
  for (int i = static_cast<int>(threadIdx.x); i < kTile.rows * kTile.columns; i += kThreads) {
    const int row = i / kTile.columns;
    const int column = i % kTile.columns;
    if (first_row + row < product.rows && first_column + column < product.columns)
      slice[std::int64_t{first_row + row} * product.columns + first_column + column] =
          lib::from_f32<C>(epilogue.finished(tile_c[row * kSumsPitch + column], first_column + column));
  }
}

struct Step {
  static void with_type(DType dtype, auto visit) { lib::with_half(dtype, visit); }
  static TileShape wgrad_tile(const Geometry&) { return kTile; }

  template <class C, class P, class E>
  static void enqueue(Stream& stream, const P& product, C* c, const E& epilogue, int slices) {
    const simt::Config config{.grid = grid_of(product.rows, product.columns, kTile, slices), .block = dim3(kThreads)};
    simt::launch<conv2d_product_wmma_kernel<C, P, E>>(stream, config, product, c, epilogue,
                                                      k_of_slice(product.k, kTile, slices));
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
