// SPDX-License-Identifier: Apache-2.0
// Idea: a thread computes several elements of C, so that each number that it loads from shared memory is multiplied
//   several times from a register.
// Mapping: each thread computes 4 x 4 elements of C, 16 rows and 16 columns apart; each block of 16 x 16 threads 64 x
//   64, in k-tiles of 16. In loading, neighbouring threads take neighbouring elements of memory.
// Traffic and bound: 8 loads from shared memory for 16 multiply-adds, instead of 32. Neighbouring threads read
//   neighbouring numbers of b_tile, and two numbers of a_tile, of which each is for half of the warp.
// Gains over the step before: loads from shared memory: a quarter.
// Still slow because: each load brings one number; a K-major operand is stored with conflicts of two; and nothing is
//   multiplied while a tile is loaded.
// Limits: as before.

#include "kernels/ops/gemm/strided.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kTile = 64;  // rows and columns of C
constexpr int kTileK = 16;
constexpr int kThreads = 16;            // on each axis
constexpr int kOwn = kTile / kThreads;  // rows and columns of a thread
using Tile = float[kTileK][kTile + 1];

/// tile[k][mn] of A or of B, 0 outside.
__device__ inline void load_tile(const Strided& from, bool is_a, int first_mn, int first_k, Tile& tile) {
  const bool k_major = (is_a ? from.column_step : from.row_step) == 1;
  const int thread = static_cast<int>(threadIdx.y * kThreads + threadIdx.x);
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < kOwn; ++i) {
    const int index = thread + i * kThreads * kThreads;
    const int mn = k_major ? index / kTileK : index % kTile;
    const int k = k_major ? index % kTileK : index / kTile;
    tile[k][mn] = is_a ? from.value(first_mn + mn, first_k + k) : from.value(first_k + k, first_mn + mn);
  }
}

__global__ void __launch_bounds__(kThreads* kThreads)
    gemm_run_register_tile_kernel(SIMT_GRID_CONST(StridedProblem) problem) {
  SIMT_SHARED(Tile, a_tile);
  SIMT_SHARED(Tile, b_tile);
  const int first_row = static_cast<int>(blockIdx.x) * kTile;
  const int first_column = static_cast<int>(blockIdx.y) * kTile;
  const auto own_row = static_cast<int>(threadIdx.y), own_column = static_cast<int>(threadIdx.x);
  float sums[kOwn][kOwn] = {};
  for (int first_k = 0; first_k < problem.k; first_k += kTileK) {
    load_tile(problem.a, true, first_row, first_k, a_tile);
    load_tile(problem.b, false, first_column, first_k, b_tile);
    __syncthreads();  // both tiles are complete
    for (int k = 0; k < kTileK; ++k) {
      float a[kOwn], b[kOwn];
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kOwn; ++i) {
        a[i] = a_tile[k][own_row + i * kThreads];
        b[i] = b_tile[k][own_column + i * kThreads];
      }
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kOwn; ++i) {
        SIMT_UNROLL_ON_GPU
        for (int j = 0; j < kOwn; ++j) sums[i][j] += a[i] * b[j];
      }
    }
    __syncthreads();  // all reads of this tile are done before the next k-tile overwrites it
  }
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < kOwn; ++i) {
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < kOwn; ++j)
      problem.c.put(first_row + own_row + i * kThreads, first_column + own_column + j * kThreads, sums[i][j]);
  }
}

void run(Stream& stream, const Args& args) {
  run_strided<gemm_run_register_tile_kernel>(stream, "register_tile", args, kTile, kTile, dim3(kThreads, kThreads));
}

}  // namespace

Variant register_tile() { return {"register_tile", run, supports_f32, is_f32}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
