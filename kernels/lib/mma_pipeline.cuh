// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/async_copy.h"
#include "kernels/lib/tensor_core.h"

/// The main loop of a matrix product on tensor cores, multi-stage as in CUTLASS: cp.async copies k-tiles of A and B
/// into shared memory, kStages - 1 of them ahead; ldmatrix loads fragments from the oldest stage; mma.sync multiplies
/// them.
///
/// A tile of an operand in shared memory is a type with
///
///   Element               __half or __nv_bfloat16
///   kKMajor               whether K is the contiguous dimension (A as stored, B transposed), else M or N is
///   at(row, column)       the address of the 16-byte vector that begins at that row and column in memory's order
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Loads 16 x 16 elements from (mn, k) on: a fragment of A, or two of B side by side. See kernels/lib/tensor_core.h.
template <bool kIsA, class Tile>
__device__ void load_fragment(std::uint32_t (&fragment)[4], const Tile& tile, int mn, int k, int lane) {
  const simt::Position position = kIsA == Tile::kKMajor ? simt::matrices_down(lane) : simt::matrices_across(lane);
  if constexpr (Tile::kKMajor)
    ldmatrix_x4(fragment, tile.at(mn + position.row, k + position.column));
  else
    ldmatrix_x4_trans(fragment, tile.at(k + position.row, mn + position.column));
}

/// The accumulators of a warp: kRows x kColumns of C, as tiles of 16 x 8 that simt::mma_position_in_c describes.
template <int kRows, int kColumns>
struct MmaAccumulators {
  float sums[kRows / 16][kColumns / 8][4] = {};

  /// Adds the product over K = [k, k + 16) of the tiles' rows from `row` and columns from `column` on.
  template <class TileA, class TileB>
  __device__ void multiply_add(const TileA& a_tile, int row, const TileB& b_tile, int column, int k, int lane) {
    std::uint32_t b[kColumns / 16][4];
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < kColumns / 16; ++j) load_fragment<false>(b[j], b_tile, column + 16 * j, k, lane);
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kRows / 16; ++i) {
      std::uint32_t a[4];
      load_fragment<true>(a, a_tile, row + 16 * i, k, lane);
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < kColumns / 8; ++j)
        mma_m16n8k16<typename TileA::Element>(sums[i][j], a, b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }
};

/// The stages of one operand in shared memory. A struct, because g++ guards the start of a thread-local array of a
/// class, which TSan takes for a race of fibers.
template <class Tile, int kStages>
struct MmaStages {
  Tile tiles[kStages];
};

/// sums += A B over `k_tiles` k-tiles of kTileK each; `row` and `column` are the warp's first in the block's tile.
/// copy(k_tile, a_tile, b_tile) starts the copies of a k-tile by async_copy16, or stores it.
///
/// Threads   the whole block.
/// Cost      a barrier for each k-tile.
template <int kTileK, int kRows, int kColumns, class TileA, class TileB, int kStages, class Copy>
__device__ void mma_main_loop(MmaAccumulators<kRows, kColumns>& sums, MmaStages<TileA, kStages>& a, int row,
                              MmaStages<TileB, kStages>& b, int column, int k_tiles, Copy copy) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto start = [&](int k_tile) {
    if (k_tile < k_tiles) copy(k_tile, a.tiles[k_tile % kStages], b.tiles[k_tile % kStages]);
    async_commit();  // past the end an empty group, so that the wait below counts right
  };
  for (int k_tile = 0; k_tile < kStages - 1; ++k_tile) start(k_tile);
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    async_wait<kStages - 2>();
    __syncthreads();  // stage `k_tile` is complete, and no thread still reads the one before it, which is filled next
    start(k_tile + kStages - 1);
    SIMT_UNROLL_ON_GPU
    for (int k = 0; k < kTileK; k += 16)
      sums.multiply_add(a.tiles[k_tile % kStages], row, b.tiles[k_tile % kStages], column, k, lane);
  }
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
