// SPDX-License-Identifier: Apache-2.0
// Idea: the tensor cores' own instructions. cp.async fills a multi-stage buffer of four k-tiles in shared memory, so
//   that loads of later k-tiles are in flight while this one is multiplied; 16-byte vectors are swizzled instead of
//   padded; ldmatrix loads fragments in the layout of mma.sync; sums go to C from registers (lib/mma_pipeline.cuh).
//   Where C has few tiles, K is split over several blocks, and a second kernel adds up their slices (sum_slices.cu).
// Mapping: each block of 4 warps computes 128 x 64 of C, in k-tiles of 32; each warp 64 x 32, as 4 x 4 products of 16 x
//   8 x 16. blockIdx.z: the split-K slice.
// Traffic and bound: 2 k elements for 128 x 64 sums. 6 ldmatrix for 16 mma.sync: bound by the tensor cores as far as
//   mma.sync reaches, for small products by launch and latency. Slices cost 8 bytes for each partial sum.
// Gains over the step before: one barrier for each k-tile instead of two, and memory's latency hidden behind three
//   k-tiles; half the loads from shared memory for each product; no detour for sums; all multiprocessors work, also for
//   small C.
// Still slow because: mma.sync reaches about two thirds of what wgmma does on sm_90, and every warp computes addresses.
// Limits: f16 and bf16; m, k <= 2^30, 65,535 tiles of columns. Rows whose length is no multiple of 8 are loaded element
//   by element, without cp.async.

#include <cstdint>

#include "kernels/lib/mma_pipeline.cuh"
#include "kernels/ops/gemm/gemm.h"
#include "kernels/ops/gemm/tiles.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// A k-tile of an operand in shared memory: rows in memory's order without padding. The 16-byte vectors of a row are
/// XOR-swizzled by its number, so that 8 neighbouring rows of one vector lie in all 32 banks.
template <class T, int kMN, int kK, bool kIsKMajor>
struct MmaTile : TileShape<kMN, kK, kIsKMajor> {
  using Shape = TileShape<kMN, kK, kIsKMajor>;
  using Element = T;

  T elements[Shape::kRows * Shape::kColumns];

  __device__ static int offset(int row, int column) {
    // Rows of 64 bytes: two share 128 bytes, what all banks hold, and have 4 vectors each.
    const int swizzle = Shape::kColumns >= 64 ? row % 8 : row / 2 % 4;
    return row * Shape::kColumns + (column / lib::kVectorElements ^ swizzle) * lib::kVectorElements;
  }
  __device__ const T* at(int row, int column) const { return elements + offset(row, column); }

  /// Starts to copy a k-tile: by cp.async, except vectors at an edge and in rows that are not aligned. `kThreads` in
  /// the block.
  template <int kThreads>
  __device__ void start(const Matrix<T>& from, int first_mn, int first_k) {
    const int first_row = kIsKMajor ? first_mn : first_k;
    const int first_column = kIsKMajor ? first_k : first_mn;
    constexpr int kVectorsOfRow = Shape::kColumns / lib::kVectorElements;
    static_assert(Shape::kVectors % kThreads == 0);
    SIMT_UNROLL_ON_GPU
    for (int turn = 0; turn < Shape::kVectors / kThreads; ++turn) {
      const int i = static_cast<int>(threadIdx.x) + turn * kThreads;
      const int row = i / kVectorsOfRow;
      const int column = i % kVectorsOfRow * lib::kVectorElements;
      T* to = elements + offset(row, column);
      if (from.aligned && from.holds(first_row + row, first_column + column))
        async_copy16(to, from.at(first_row + row, first_column + column));
      else
        simt::store_as<Vector<T>>(to, from.vector(first_row + row, first_column + column));
    }
  }
};

constexpr int kTileRows = 128;
constexpr int kTileColumns = 64;
constexpr int kTileK = 32;
constexpr int kStages = 4;
constexpr int kThreads = 128;
constexpr int kWarpRows = 64;
constexpr int kWarpColumns = 32;

constexpr int kMinKTiles = 4;  // of a slice: what fills the stages once

template <class T, bool kAKMajor, bool kBKMajor>
__global__ void __launch_bounds__(kThreads)
    gemm_run_mma_kernel(SIMT_GRID_CONST(Problem<T>) problem, SIMT_GRID_CONST(Output<T>) c, int k_tiles_of_slice) {
  using A = MmaTile<T, kTileRows, kTileK, kAKMajor>;
  using B = MmaTile<T, kTileColumns, kTileK, kBKMajor>;
  using StagesA = lib::MmaStages<A, kStages>;
  using StagesB = lib::MmaStages<B, kStages>;
  SIMT_SHARED(StagesA, stages_a);
  SIMT_SHARED(StagesB, stages_b);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int first_row = static_cast<int>(blockIdx.x) * kTileRows;
  const int first_column = static_cast<int>(blockIdx.y) * kTileColumns;
  const KTilesOfBlock k_tiles(problem.k, kTileK, k_tiles_of_slice);
  const int row = warp / 2 * kWarpRows;
  const int column = warp % 2 * kWarpColumns;

  lib::MmaAccumulators<kWarpRows, kWarpColumns> sums;
  lib::mma_main_loop<kTileK>(sums, stages_a, row, stages_b, column, k_tiles.count, [&](int k_tile, A& a, B& b) {
    const int k = (k_tiles.first + k_tile) * kTileK;
    a.template start<kThreads>(problem.a, first_row, k);
    b.template start<kThreads>(problem.b, first_column, k);
  });
  const Output<T> to = output_of_block(c);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < kWarpRows / 16; ++i) {
    SIMT_UNROLL_ON_GPU
    for (int half = 0; half < 2; ++half) {  // a lane's rows in a fragment, 8 apart
      const auto to_row = to.row(first_row + row + 16 * i + 8 * half + lane / 4);
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < kWarpColumns / 8; j += 2) {
        const float* const left = sums.sums[i][j] + 2 * half;
        const float* const right = sums.sums[i][j + 1] + 2 * half;
        float four[kFour];
        join_pairs(lane, {left[0], left[1]}, {right[0], right[1]}, four);
        to_row.put(first_column + column + 8 * j + four_column(lane), four);
      }
    }
  }
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.m == 0 || args.n == 0) return;
  reject_row_sums("mma", args);
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    const Problem<T> problem(args);
    simt::Config config{.grid = problem.tiles(kTileRows, kTileColumns), .block = dim3(kThreads)};
    with_slices(stream, args, problem, kTileK, kMinKTiles, config.grid, [&](const Output<T>& to, int k_tiles) {
      with_layouts(args, [&](auto a_k_major, auto b_k_major) {
        simt::launch<gemm_run_mma_kernel<T, a_k_major.value, b_k_major.value>>(stream, config, problem, to, k_tiles);
      });
    });
  });
}

}  // namespace

Variant mma() {
  return {.name = "mma",
          .run = run,
          .supports = lib::supports_cuda_half,
          .computes = lib::is_half,
          .workspace_bytes = workspace_bytes(kTileRows, kTileColumns)};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
