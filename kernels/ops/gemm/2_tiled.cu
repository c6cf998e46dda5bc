// SPDX-License-Identifier: Apache-2.0
// Idea: a block computes a tile of C from k-tiles of op(A) and op(B) in shared memory, as f32 and with M (or N)
//   contiguous; each thread multiplies from there.
// Mapping: each thread computes 8 x 8 elements of C; each block, 8 x 8 threads, 64 x 64, in k-tiles of 16. Thread (x,
//   y) has rows 4 y ... and 32 + 4 y ..., columns 4 x ... and 32 + 4 x .... In loading, neighbouring threads take
//   neighbouring elements of memory.
// Traffic and bound: each element is read from memory once per tile of C in its row or column: 2 k elements for 64 x 64
//   sums. A thread loads 16 numbers from shared memory, as four float4, for 64 multiplications. Bound by f32
//   arithmetic. A K-major operand is transposed when it is stored: a pitch of 68 numbers puts 8 (K) x 4 elements, what
//   a warp stores at once, into 32 different banks.
// Gains over the step before: 64 products for each number loaded from memory, instead of 8 or 32.
// Still slow because: nothing is multiplied while a tile is loaded, and halves are multiplied as f32: no tensor cores.
// Limits: m, k <= 2^30, 65,535 tiles of columns.

#include "kernels/ops/gemm/gemm.h"
#include "kernels/ops/gemm/tiles.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kTile = 64;  // rows and columns of C
constexpr int kTileK = 16;
constexpr int kPitch = kTile + 4;
constexpr int kThreads = 64;

/// tile[k][mn], zeros outside of the operand.
template <bool kKMajor, class T>
__device__ void load_tile(const Matrix<T>& from, int first_mn, int first_k, float (&tile)[kTileK][kPitch]) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kTileK; i += kThreads) {
    if constexpr (kKMajor) {
      const int mn = i / 8 % kTile;
      const int k = i % 8 + i / (8 * kTile) * 8;
      tile[k][mn] = lib::to_f32(from.value(first_mn + mn, first_k + k));
    } else {
      const int mn = i % kTile;
      const int k = i / kTile;
      tile[k][mn] = lib::to_f32(from.value(first_k + k, first_mn + mn));
    }
  }
}

/// Four neighbours each from both halves of a row.
__device__ inline void load_both_halves(const float* row, int first, float (&values)[8]) {
  simt::store_as<float4>(values, simt::load_as<float4>(row + first));
  simt::store_as<float4>(values + 4, simt::load_as<float4>(row + first + kTile / 2));
}

template <class T, bool kAKMajor, bool kBKMajor>
__global__ void __launch_bounds__(kThreads) gemm_run_tiled_kernel(SIMT_GRID_CONST(Problem<T>) problem) {
  SIMT_SHARED(float[kTileK][kPitch], a_tile);
  SIMT_SHARED(float[kTileK][kPitch], b_tile);
  const int first_row = static_cast<int>(blockIdx.x) * kTile;
  const int first_column = static_cast<int>(blockIdx.y) * kTile;
  const int row = static_cast<int>(threadIdx.x) / 8 * 4;
  const int column = static_cast<int>(threadIdx.x) % 8 * 4;
  float sums[8][8] = {};
  for (int first_k = 0; first_k < problem.k; first_k += kTileK) {
    load_tile<kAKMajor>(problem.a, first_row, first_k, a_tile);
    load_tile<kBKMajor>(problem.b, first_column, first_k, b_tile);
    __syncthreads();  // both tiles are complete
    for (int k = 0; k < kTileK; ++k) {
      alignas(16) float a[8], b[8];
      load_both_halves(a_tile[k], row, a);
      load_both_halves(b_tile[k], column, b);
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < 8; ++i) {
        SIMT_UNROLL_ON_GPU
        for (int j = 0; j < 8; ++j) sums[i][j] += a[i] * b[j];
      }
    }
    __syncthreads();  // all reads of this tile are done before the next k-tile overwrites it
  }
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < 8; ++i) {
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < 8; ++j)
      problem.c.put(first_row + row + i % 4 + i / 4 * kTile / 2, first_column + column + j % 4 + j / 4 * kTile / 2,
                    sums[i][j]);
  }
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.m == 0 || args.n == 0) return;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const Problem<T> problem(args);
    const simt::Config config{.grid = problem.tiles(kTile, kTile), .block = dim3(kThreads)};
    with_layouts(args, [&](auto a_k_major, auto b_k_major) {
      simt::launch<gemm_run_tiled_kernel<T, a_k_major.value, b_k_major.value>>(stream, config, problem);
    });
  });
}

}  // namespace

Variant tiled() { return {"tiled", run, lib::supports_cuda_floating, lib::is_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
