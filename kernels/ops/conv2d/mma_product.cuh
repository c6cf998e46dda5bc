// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/async_copy.h"
#include "kernels/lib/tensor_core.h"
#include "kernels/ops/conv2d/products.cuh"
#include "kernels/ops/conv2d/shares.h"

/// A block's tile of a product of views (products.cuh) on tensor cores: tiles of both operands come into shared memory
/// ahead of time, in stages, by copies that need no registers; ldmatrix takes them from there, mma.sync multiplies.
namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// A block's tile of C: warps one below the other, with 32 rows each and all columns.
template <int kWarpsOfBlock, int kColumnsOfTile, int kDepthOfTile>
struct MmaTile {
  static constexpr int kWarps = kWarpsOfBlock;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kRows = 32 * kWarps;
  static constexpr int kColumns = kColumnsOfTile;
  static constexpr int kDepth = kDepthOfTile;
  static constexpr TileShape kShape{.rows = kRows, .columns = kColumns, .depth = kDepth};
};

/// A thread's part of its warp's 32 rows: 2 x kColumns / 8 tiles of 16 x 8, as simt::mma_place_in_c has them.
template <class Tile>
using MmaSums = float[2][Tile::kColumns / 8][4];

/// Calls visit(row, column, sum) for this thread's sums; row and column count from the block's tile.
template <class Tile, class Visit>
__device__ void for_each_sum(const MmaSums<Tile>& sums, Visit visit) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < 2; ++i) {
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < Tile::kColumns / 8; ++j) {
      SIMT_UNROLL_ON_GPU
      for (int e = 0; e < 4; ++e) {
        const simt::Place place = simt::mma_place_in_c(lane, e);
        visit(warp * 32 + i * 16 + place.row, j * 8 + place.column, sums[i][j][e]);
      }
    }
  }
}

inline constexpr int kMmaStages = 3;

/// Where this lane points for ldmatrix: its row of the four matrices that begin at an element of the tile.
template <class T, int kLines, int kPitch>
__device__ const T* row_at(const T (&lines)[kLines][kPitch], int line, int position, const simt::Place& place) {
  return &lines[line + place.row][position + place.column];
}

/// 16 x 16 elements as a tile of a, whichever way they are stored.
template <class TileOfA>
__device__ void take_a(std::uint32_t (&a)[4], const TileOfA& tile, int lane, int outer, int depth) {
  if constexpr (TileOfA::kByOuter)
    lib::ldmatrix_x4(a, row_at(tile.lines, outer, depth, simt::matrices_down(lane)));
  else
    lib::ldmatrix_x4_trans(a, row_at(tile.lines, depth, outer, simt::matrices_across(lane)));
}

/// The same as two tiles of b.
template <class TileOfB>
__device__ void take_b(std::uint32_t (&b)[4], const TileOfB& tile, int lane, int outer, int depth) {
  if constexpr (TileOfB::kByOuter)
    lib::ldmatrix_x4(b, row_at(tile.lines, outer, depth, simt::matrices_across(lane)));
  else
    lib::ldmatrix_x4_trans(b, row_at(tile.lines, depth, outer, simt::matrices_down(lane)));
}

/// A struct, because g++ guards the start of a thread-local array of a class, which TSan takes for a race of fibers.
template <class OneTile>
struct MmaStages {
  OneTile tiles[kMmaStages];
};

/// sums += A B for the block's tile, over the depths [begin, end); begin is a multiple of the tile's depth away from 0,
/// and end, too, or the last one.
///
/// Threads   the whole block; a block may call it again for other operands of the same types.
/// Cost      a barrier each step along the depth.
template <class Tile, class A, class B>
__device__ void add_mma_product(MmaSums<Tile>& sums, const A& a, const B& b, int first_row, int first_column, int begin,
                                int end) {
  using StagesA = MmaStages<OperandTile<A, Tile::kRows, Tile::kDepth>>;
  using StagesB = MmaStages<OperandTile<B, Tile::kColumns, Tile::kDepth>>;
  SIMT_SHARED(StagesA, stages_a);
  SIMT_SHARED(StagesB, stages_b);
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int steps = (end - begin + Tile::kDepth - 1) / Tile::kDepth;
  const auto start = [&](int step) {
    if (step < steps) {
      const int depth = begin + step * Tile::kDepth;
      stages_a.tiles[step % kMmaStages].template load<Tile::kThreads>(a, first_row, depth, async_copy16);
      stages_b.tiles[step % kMmaStages].template load<Tile::kThreads>(b, first_column, depth, async_copy16);
    }
    async_commit();  // past the end an empty group, so that the wait below counts right
  };
  __syncthreads();  // no thread still reads the stages of the product before
  for (int step = 0; step < kMmaStages - 1; ++step) start(step);
  for (int step = 0; step < steps; ++step) {
    async_wait<kMmaStages - 2>();
    __syncthreads();  // stage `step` is complete, and no thread still reads the one before it, which is filled again
    start(step + kMmaStages - 1);
    const auto& stage_a = stages_a.tiles[step % kMmaStages];
    const auto& stage_b = stages_b.tiles[step % kMmaStages];
    SIMT_UNROLL_ON_GPU
    for (int k = 0; k < Tile::kDepth; k += 16) {
      std::uint32_t a_tiles[2][4];
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < 2; ++i) take_a(a_tiles[i], stage_a, lane, warp_row + i * 16, k);
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < Tile::kColumns / 8; j += 2) {
        std::uint32_t b_tiles[4];
        take_b(b_tiles, stage_b, lane, j * 8, k);
        SIMT_UNROLL_ON_GPU
        for (int i = 0; i < 2; ++i) {
          lib::mma_m16n8k16<typename A::Element>(sums[i][j], a_tiles[i], b_tiles[0], b_tiles[1]);
          lib::mma_m16n8k16<typename A::Element>(sums[i][j + 1], a_tiles[i], b_tiles[2], b_tiles[3]);
        }
      }
    }
  }
  async_wait<0>();
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
