// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/lib/mma_pipeline.cuh"
#include "kernels/ops/conv2d/gathered_tile.cuh"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// A block's tile of C by mma.sync: each warp multiplies 64 x 32 of it, or 32 x 32.
template <int kRowsOfTile, int kColumnsOfTile>
struct GatheredMmaTile {
  static constexpr int kRows = kRowsOfTile;
  static constexpr int kColumns = kColumnsOfTile;
  static constexpr int kWarpRows = kRows * kColumns > 64 * 64 ? 64 : 32;
  static constexpr int kWarpColumns = 32;
  static constexpr int kWarpsAcross = kColumns / kWarpColumns;
  static constexpr int kThreads = 32 * kWarpsAcross * (kRows / kWarpRows);
  static constexpr int kRun = 2;
  using Sums = lib::MmaAccumulators<kWarpRows, kWarpColumns>;

  __device__ static int row() { return static_cast<int>(threadIdx.x / 32u) / kWarpsAcross * kWarpRows; }
  __device__ static int column() { return static_cast<int>(threadIdx.x / 32u) % kWarpsAcross * kWarpColumns; }

  template <class Stages, class P>
  __device__ static void multiply(Sums& sums, Stages& stages, const P& product, int k) {
    const int k_tiles = k_tiles_of<typename Stages::T>(k);
    const int lane = static_cast<int>(threadIdx.x % 32u);
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      stages.wait();
      __syncthreads();  // the stage is complete, and no thread still reads the one before it, which is filled next
      stages.start_next(product);
      SIMT_UNROLL_ON_GPU
      for (int step = 0; step < kGatheredK<typename Stages::T>; step += 16)
        sums.multiply_add(stages.stage().a, row(), stages.stage().b, column(), step, lane);
      stages.release();
    }
  }

  template <class Visit>
  __device__ static void for_each_run(Sums& sums, Visit visit) {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kWarpRows / 16; ++i) {
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < kWarpColumns / 8; ++j) {
        SIMT_UNROLL_ON_GPU
        for (int e = 0; e < 4; e += 2) {
          const simt::Position at = simt::mma_position_in_c(static_cast<int>(threadIdx.x % 32u), e);
          visit(row() + 16 * i + at.row, column() + 8 * j + at.column, &sums.sums[i][j][e]);
        }
      }
    }
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
