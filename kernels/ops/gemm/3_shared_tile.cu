// SPDX-License-Identifier: Apache-2.0
// Idea: a block loads a k-tile of op(A) and of op(B) into shared memory once, and all its threads multiply from there.
// Mapping: each thread computes one element of C, each block of 32 x 32 threads 32 x 32, in k-tiles of 32. In loading,
//   threadIdx.x follows memory: along K where the operand is K-major, else along M or N.
// Traffic and bound: each number is loaded from memory once per tile of C: 2 loads for 32 multiply-adds of a thread,
//   whatever the layouts. From shared memory it is still two loads for each multiply-add: a_tile's number is the same
//   for all threads of a warp, b_tile's are neighbours. A row of 33 numbers lets a transposed operand (M-major A,
//   K-major B) be stored without bank conflicts. Bound by the loads from shared memory.
// Gains over the step before: sectors of memory: a 32nd.
// Still slow because: a thread keeps nothing in registers but its sum.
// Limits: as before.

#include "kernels/ops/gemm/strided.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kTile = 32;
using Tile = float[kTile][kTile + 1];

/// tile[row][column], 0 outside of the operand. Each thread loads one number.
__device__ inline void load_tile(const Strided& from, int first_row, int first_column, Tile& tile) {
  const bool follows_columns = from.column_step == 1;
  const auto row = static_cast<int>(follows_columns ? threadIdx.y : threadIdx.x);
  const auto column = static_cast<int>(follows_columns ? threadIdx.x : threadIdx.y);
  tile[row][column] = from.value(first_row + row, first_column + column);
}

__global__ void __launch_bounds__(kTile* kTile) gemm_run_shared_tile_kernel(SIMT_GRID_CONST(StridedProblem) problem) {
  SIMT_SHARED(Tile, a_tile);
  SIMT_SHARED(Tile, b_tile);
  const int first_row = static_cast<int>(blockIdx.x) * kTile;
  const int first_column = static_cast<int>(blockIdx.y) * kTile;
  float sum = 0;
  for (int first_k = 0; first_k < problem.k; first_k += kTile) {
    load_tile(problem.a, first_row, first_k, a_tile);
    load_tile(problem.b, first_k, first_column, b_tile);
    __syncthreads();  // both tiles are complete
    SIMT_UNROLL_ON_GPU
    for (int k = 0; k < kTile; ++k) sum += a_tile[threadIdx.y][k] * b_tile[k][threadIdx.x];
    __syncthreads();  // all reads of this tile are done before the next k-tile overwrites it
  }
  problem.c.put(first_row + static_cast<int>(threadIdx.y), first_column + static_cast<int>(threadIdx.x), sum);
}

void run(Stream& stream, const Args& args) {
  run_strided<gemm_run_shared_tile_kernel>(stream, "shared_tile", args, kTile, kTile, dim3(kTile, kTile));
}

}  // namespace

Variant shared_tile() { return {"shared_tile", run, supports_f32, is_f32}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
