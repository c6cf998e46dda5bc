// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/ops/conv2d/gathered_tile.cuh"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// A block's tile of C by wgmma: each warpgroup multiplies 64 or 128 rows of it, and all columns.
template <int kRowsOfTile, int kColumnsOfTile>
struct GatheredWgmmaTile {
  static constexpr int kGroupThreads = 128;
  static constexpr int kGroupRows = 64;  // of a product
  static constexpr int kRows = kRowsOfTile;
  static constexpr int kColumns = kColumnsOfTile;
  static constexpr int kGroups = kRows * kColumns > 128 * 64 ? 2 : 1;
  static constexpr int kThreads = kGroupThreads * kGroups;
  static constexpr int kProducts = kRows / kGroupRows / kGroups;  // of a warpgroup, one below the other
  static constexpr int kRun = 2;
  struct Sums {
    float of[kProducts][kColumns / 2] = {};
  };

  __device__ static int first_row() {
    return static_cast<int>(threadIdx.x / unsigned{kGroupThreads}) * kProducts * kGroupRows;
  }

  template <class Stages, class P>
  __device__ static void multiply(Sums& sums, Stages& stages, const P& product, int k) {
    const int k_tiles = k_tiles_of<typename Stages::T>(k);
    using T = typename Stages::T;
    using A = typename Stages::TileA;
    using B = typename Stages::TileB;
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kProducts; ++i) lib::warpgroup_expose(sums.of[i]);
    const std::uint32_t first = lib::shared_address(&stages.stage());
    const simt::MatrixDescriptor first_a = A::at(A::operand(first), first_row(), 0);
    const simt::MatrixDescriptor first_b = B::operand(first + sizeof(A));
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      stages.wait();
      lib::warpgroup_publish();
      __syncthreads();  // the stage is complete, and no warp still multiplies the one before it
      stages.start_next(product);
      const auto stage = static_cast<std::uint32_t>(stages.offset_bytes());
      const simt::MatrixDescriptor a = first_a.advanced(stage);
      const simt::MatrixDescriptor b = first_b.advanced(stage);
      lib::warpgroup_fence();
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kProducts; ++i) {
        SIMT_UNROLL_ON_GPU
        for (int step = 0; step < kGatheredK<T>; step += 16)
          lib::warpgroup_mma_m64k16<T, !A::kKMajor, !B::kKMajor>(sums.of[i], A::at(a, i * kGroupRows, step),
                                                                 B::at(b, 0, step));
      }
      lib::warpgroup_commit();
      lib::warpgroup_wait<0>();  // copies between the two would have ptxas serialize the products
      stages.release();
    }
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kProducts; ++i) lib::warpgroup_wait_for(sums.of[i]);
  }

  template <class Visit>
  __device__ static void for_each_run(Sums& sums, Visit visit) {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kProducts; ++i) {
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < kColumns / 2; j += 2) {
        const simt::Position at =
            simt::warpgroup_position_in_d(static_cast<int>(threadIdx.x % unsigned{kGroupThreads}), j);
        visit(first_row() + i * kGroupRows + at.row, at.column, &sums.of[i][j]);
      }
    }
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
