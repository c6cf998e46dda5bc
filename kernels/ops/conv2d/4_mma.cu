// SPDX-License-Identifier: Apache-2.0
// Idea: the tensor cores' own instructions, and addresses that are found once (gather.cuh): cp.async copies the next
//   two k-tiles into shared memory while this one is multiplied, without a detour through registers; ldmatrix loads
//   fragments from there, transposing where K is not contiguous.
// Mapping: each block computes 128 x 128, 128 x 64, 64 x 128 or 64 x 64 of C in k-tiles of 64, each warp 64 x 32 of it,
//   or 32 x 32. blockIdx.z: the split-K slice (wgrad), or the offset within a stride (dgrad). Sums go to C through
//   shared memory as whole vectors, those of slices, in f32, from registers.
// Traffic and bound: A is read columns / 128 times, B rows / 128 times, from the L2 cache; 64 operations for each byte
//   that comes to shared memory. Bound by the wavefronts of ldmatrix: a fragment serves 32 or 64 rows or columns.
// Gains over the step before: few instructions for addresses; copies overlap products; no bank conflicts.
// Still slow because: mma.sync cannot keep a Hopper's tensor cores as busy as wgmma does; of 288 columns the last tile
//   is mostly empty.
// Limits: f16 and bf16; those of Patches; 2 million columns. An infinity in w or dy times the padding's zeros is NaN.
//   What is not gathered (is_gathered, vector_bytes) has the operands of products.cuh, whose elements come one by one,
//   or kernels for filters of few weights (short_filters.h).

#include <algorithm>
#include <type_traits>

#include "kernels/lib/mma_pipeline.cuh"
#include "kernels/ops/conv2d/gathered_mma_tile.cuh"
#include "kernels/ops/conv2d/products.cuh"
#include "kernels/ops/conv2d/short_filters.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// A block's tile of C: each warp computes 32 rows and all columns.
template <int kWarpsOfBlock, int kColumnsOfTile, int kTileK>
struct MmaTile {
  static constexpr int kWarps = kWarpsOfBlock;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kWarpRows = 32;
  static constexpr int kRows = kWarpRows * kWarps;
  static constexpr int kColumns = kColumnsOfTile;
  static constexpr int kK = kTileK;
  static constexpr TileShape kShape{.rows = kRows, .columns = kColumns, .k = kK};
  using Accumulators = lib::MmaAccumulators<kWarpRows, kColumns>;
};

using Narrow = MmaTile<4, 32, 32>;
using Long = MmaTile<2, 64, 32>;  // of wgrad, whose C is small
using Small = MmaTile<1, 32, 32>;

constexpr bool is_small(std::int64_t rows, std::int64_t columns) {
  return rows <= Small::kRows && columns <= Small::kColumns;
}

/// sums += A B for the block's tile, over K = [begin, end); begin is a multiple of the tile's K, and end, too, unless
/// it is the end of K.
///
/// Threads   the whole block, once.
template <class Tile, class A, class B>
__device__ void add_mma_product(typename Tile::Accumulators& sums, const A& a, const B& b, int first_row,
                                int first_column, int begin, int end) {
  constexpr int kStages = 3;
  using TileA = OperandTile<A, Tile::kRows, Tile::kK>;
  using TileB = OperandTile<B, Tile::kColumns, Tile::kK>;
  using StagesA = lib::MmaStages<TileA, kStages>;
  using StagesB = lib::MmaStages<TileB, kStages>;
  SIMT_SHARED(StagesA, stages_a);
  SIMT_SHARED(StagesB, stages_b);
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * Tile::kWarpRows;
  const int k_tiles = (end - begin + Tile::kK - 1) / Tile::kK;
  TileLoader<TileA, Tile::kThreads> a_loader(a, first_row);
  TileLoader<TileB, Tile::kThreads> b_loader(b, first_column);
  lib::mma_main_loop<Tile::kK>(sums, stages_a, warp_row, stages_b, 0, k_tiles,
                               [&](int k_tile, TileA& a_tile, TileB& b_tile) {
                                 const int k = begin + k_tile * Tile::kK;
                                 a_loader.load(a_tile, a, k, async_copy16);
                                 b_loader.load(b_tile, b, k, async_copy16);
                               });
  async_wait<0>();
}

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

template <class Tile, class C, class P, class E>
__global__ void __launch_bounds__(Tile::kThreads)
    conv2d_product_mma_kernel(SIMT_GRID_CONST(P) product, C* __restrict__ c, E epilogue, int k_of_slice) {
  const int first_row = static_cast<int>(blockIdx.x) * Tile::kRows;
  const int first_column = static_cast<int>(blockIdx.y) * Tile::kColumns;
  const lib::KOfBlock k(product.k, k_of_slice);
  typename Tile::Accumulators sums;
  add_mma_product<Tile>(sums, product.a, product.b, first_row, first_column, k.begin, k.end);
  C* slice = c + std::int64_t{blockIdx.z} * product.rows * product.columns;
  const bool in_pairs = product.columns % 2 == 0 && reinterpret_cast<std::uintptr_t>(slice) % sizeof(Run<C, 2>) == 0;
  for_each_pair<Tile>(sums, [&](int tile_row, int tile_column, float even, float odd) {
    const int row = first_row + tile_row;
    const int column = first_column + tile_column;
    if (row >= product.rows || column >= product.columns) return;
    C* to = slice + std::int64_t{row} * product.columns + column;
    const C first = lib::from_f32<C>(epilogue.finished(even, column));
    if (column + 1 == product.columns) {
      to[0] = first;
      return;
    }
    const C second = lib::from_f32<C>(epilogue.finished(odd, column + 1));
    if (in_pairs) {
      simt::store_as(to, Run<C, 2>{{first, second}});
    } else {
      to[0] = first;
      to[1] = second;
    }
  });
}

template <class Tile, class C, class P, class E>
void launch(Stream& stream, const P& product, C* c, const E& epilogue, int slices) {
  const simt::Config config{.grid = grid_of(product.rows, product.columns, Tile::kShape, slices),
                            .block = dim3(Tile::kThreads)};
  simt::launch<conv2d_product_mma_kernel<Tile, C, P, E>>(stream, config, product, c, epilogue,
                                                         k_of_slice(product.k, Tile::kShape, slices));
}

struct Step {
  static void with_type(DType dtype, auto visit) { lib::with_half(dtype, visit); }

  static TileShape wgrad_tile(const Geometry& g) {
    return is_small(g.out_channels, g.filter_elements()) ? Small::kShape : Long::kShape;
  }

  /// Only the slices of wgrad are f32.
  template <class C, class P, class E>
  static void enqueue(Stream& stream, const P& product, C* c, const E& epilogue, int slices) {
    if constexpr (std::is_same_v<C, float>)
      is_small(product.rows, product.columns) ? launch<Small>(stream, product, c, epilogue, slices)
                                              : launch<Long>(stream, product, c, epilogue, slices);
    else
      product.columns <= Narrow::kColumns ? launch<Narrow>(stream, product, c, epilogue, slices)
                                          : launch<Long>(stream, product, c, epilogue, slices);
  }
};

/// Of what is not gathered: filters of few weights have kernels of their own.
struct OtherPasses : ProductPasses<Step> {
  static void forward(Stream& stream, const ForwardArgs& args) {
    if (!short_filters::forward(stream, args)) ProductPasses<Step>::forward(stream, args);
  }
  static void wgrad(Stream& stream, const WgradArgs& args) {
    if (!short_filters::wgrad(stream, args)) ProductPasses<Step>::wgrad(stream, args);
  }
  static std::size_t workspace_bytes(const Geometry& g) {
    return std::max(ProductPasses<Step>::workspace_bytes(g), short_filters::wgrad_workspace_bytes(g));
  }
};

template <class Tile, class C, class P, class E>
__global__ void __launch_bounds__(Tile::kThreads)
    conv2d_gathered_mma_kernel(SIMT_GRID_CONST(Products<P>) products, C* c, E epilogue) {
  const P& product = products.of[blockIdx.z];
  compute_tile<Tile>(product, c, epilogue, lib::KOfBlock::whole(product.k));
}

template <class Tile, class P>
__global__ void __launch_bounds__(Tile::kThreads)
    conv2d_gathered_slice_mma_kernel(SIMT_GRID_CONST(P) product, float* slices, int k_of_slice) {
  float* const slice = slices + std::int64_t{blockIdx.z} * product.rows * product.columns;
  compute_tile<Tile>(product, slice, NoEpilogue{}, lib::KOfBlock(product.k, k_of_slice));
}

struct Engine {
  using Tiles = TensorTiles<GatheredMmaTile>;
  using Widest = __half;  // of the types
  static void with_type(DType dtype, auto visit) { lib::with_half(dtype, visit); }

  template <class Tile, class P, class C, class E>
  static void run(Stream& stream, dim3 grid, const Products<P>& products, C* c, const E& epilogue) {
    simt::launch<conv2d_gathered_mma_kernel<Tile, C, P, E>>(stream, gathered_config<Tile, P>(grid), products, c,
                                                            epilogue);
  }
  template <class Tile, class P>
  static void run_slices(Stream& stream, dim3 grid, const P& product, float* slices, int k_of_slice) {
    simt::launch<conv2d_gathered_slice_mma_kernel<Tile, P>>(stream, gathered_config<Tile, P>(grid), product, slices,
                                                            k_of_slice);
  }
  static OtherPasses other() { return {}; }
};
using Passes = GatheredPasses<Engine>;

}  // namespace

Variant mma() {
  return {"mma",       Passes::forward, Passes::dgrad, Passes::wgrad, Passes::workspace_bytes, lib::supports_cuda_half,
          lib::is_half};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
