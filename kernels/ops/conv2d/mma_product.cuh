// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/lib/mma_pipeline.cuh"
#include "kernels/ops/conv2d/products.cuh"

/// A block's tile of a product of views (products.cuh) on tensor cores, by lib/mma_pipeline.cuh.
namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

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

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
