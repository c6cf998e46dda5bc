// SPDX-License-Identifier: Apache-2.0
// Idea: a block computes a tile of C from k-tiles of op(A) and op(B) in shared memory, as f32 and with M (or N)
//   contiguous; each thread multiplies from there, while its loads of the next k-tile are under way. Where C has few
//   tiles, K is split over several blocks, whose slices a second kernel adds up (sum_slices.cu).
// Mapping: each thread computes 8 x 4 elements of C; each block, 16 x 8 threads, 64 x 64, in k-tiles of 16. Thread (x,
//   y) has rows 4 y ... and 32 + 4 y ..., columns 4 x .... It loads four neighbours of an operand at a time: of a
//   K-major one a warp has 16 rows, and 32 bytes or more of each. blockIdx.z: the split-K slice.
// Traffic and bound: each element is read from memory once per tile of C in its row or column: 2 k elements for 64 x 64
//   sums. A thread loads 12 numbers from shared memory, as three float4, for 32 multiplications. Bound by f32
//   arithmetic. A K-major operand is transposed when it is stored: with a pitch of 68 numbers the 2 x 16 fours of a
//   warp are in 32 different banks.
// Gains over the step before: from shared memory 3 loads of 16 bytes for 32 multiply-adds, instead of 8 of 4 bytes for
//   16; memory's latency is hidden behind a k-tile; all multiprocessors work, also for a small C.
// Still slow because: halves are multiplied as f32: no tensor cores.
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
constexpr int kThreads = 128;
[[maybe_unused]] constexpr int kBlocksOfMultiprocessor = 4;  // 128 registers: left alone, nvcc takes 96 and spills
constexpr int kMinKTiles = 2;                                // of a slice
constexpr int kFours = kTile * kTileK / kFour / kThreads;    // of an operand's k-tile that a thread loads
using TileOf = float[kTileK][kPitch];                        // tile[k][mn], zeros outside of the operand

/// This thread's part of an operand's k-tile, on its way from memory to shared memory.
template <bool kKMajor, class T>
struct Fetched {
  alignas(16) float values[kFours][kFour];

  __device__ void load(const Matrix<T>& from, int first_mn, int first_k) {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kFours; ++i) {
      const int row = kKMajor ? first_mn + mn(i) : first_k + k(i);
      const int column = kKMajor ? first_k + k(i) : first_mn + mn(i);
      if (from.fours && from.holds(row, column)) {
        lib::load_channels(from.at(row, column), values[i]);
      } else {
        SIMT_UNROLL_ON_GPU
        for (int j = 0; j < kFour; ++j) values[i][j] = lib::to_f32(from.value(row, column + j));
      }
    }
  }
  __device__ void store(TileOf& tile) const {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kFours; ++i) {
      if constexpr (kKMajor) {
        SIMT_UNROLL_ON_GPU
        for (int j = 0; j < kFour; ++j) tile[k(i) + j][mn(i)] = values[i][j];
      } else {
        simt::store_as<float4>(&tile[k(i)][mn(i)], simt::load_as<float4>(values[i]));
      }
    }
  }

 private:
  /// Where the thread's i-th four begins. K-major, a warp has 2 x 16 of them: two neighbours in each of 16 rows.
  __device__ static int mn(int i) {
    const int at = static_cast<int>(threadIdx.x) + i * kThreads;
    return kKMajor ? at / 2 % kTile : at * kFour % kTile;
  }
  __device__ static int k(int i) {
    const int at = static_cast<int>(threadIdx.x) + i * kThreads;
    return kKMajor ? (at % 2 + at / (2 * kTile) * 2) * kFour : at / (kTile / kFour);
  }
};

/// The sums over K of one row of op(A) for each two threads, of which each has half of a k-tile.
struct RowSum {
  float sum = 0;

  __device__ static int row() { return static_cast<int>(threadIdx.x) % kTile; }
  __device__ static int half() { return static_cast<int>(threadIdx.x) / kTile; }
  __device__ void add(const TileOf& tile) {
    SIMT_UNROLL_ON_GPU
    for (int k = 0; k < kTileK / 2; ++k) sum += tile[half() * (kTileK / 2) + k][row()];
  }
  /// The whole block, once nobody needs `tile`, through which the halves meet.
  __device__ void put(TileOf& tile, float* to, int first_row, int rows, bool accumulate) const {
    if (half() == 1) tile[0][row()] = sum;
    __syncthreads();  // the other half of each sum is there
    if (half() == 1 || first_row + row() >= rows) return;
    float& total = to[first_row + row()];
    total = (accumulate ? total : 0.0f) + sum + tile[0][row()];
  }
};

template <class T, bool kAKMajor, bool kBKMajor>
__global__ void __launch_bounds__(kThreads, kBlocksOfMultiprocessor)
    gemm_run_tiled_kernel(SIMT_GRID_CONST(Problem<T>) problem, SIMT_GRID_CONST(Output<T>) c, float* row_sums,
                          int k_tiles_of_slice) {
  SIMT_SHARED(TileOf, a_tile);
  SIMT_SHARED(TileOf, b_tile);
  const int first_row = static_cast<int>(blockIdx.x) * kTile;
  const int first_column = static_cast<int>(blockIdx.y) * kTile;
  const int row = static_cast<int>(threadIdx.x) / 16 * 4;
  const int column = static_cast<int>(threadIdx.x) % 16 * 4;
  const bool sums_rows = row_sums && blockIdx.y == 0;
  const KTilesOfBlock k_tiles(problem.k, kTileK, k_tiles_of_slice);
  Fetched<kAKMajor, T> a_next;
  Fetched<kBKMajor, T> b_next;
  const auto fetch = [&](int k_tile) {
    const int first_k = (k_tiles.first + k_tile) * kTileK;
    a_next.load(problem.a, first_row, first_k);
    b_next.load(problem.b, first_column, first_k);
  };
  if (k_tiles.count > 0) fetch(0);
  float sums[8][kFour] = {};
  RowSum row_sum;
  for (int k_tile = 0; k_tile < k_tiles.count; ++k_tile) {
    a_next.store(a_tile);
    b_next.store(b_tile);
    __syncthreads();  // both tiles are complete
    if (k_tile + 1 < k_tiles.count) fetch(k_tile + 1);
    if (sums_rows) row_sum.add(a_tile);
    SIMT_UNROLL_ON_GPU
    for (int k = 0; k < kTileK; ++k) {
      alignas(16) float a[8], b[kFour];
      simt::store_as<float4>(a, simt::load_as<float4>(a_tile[k] + row));
      simt::store_as<float4>(a + 4, simt::load_as<float4>(a_tile[k] + row + kTile / 2));
      simt::store_as<float4>(b, simt::load_as<float4>(b_tile[k] + column));
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < 8; ++i) {
        SIMT_UNROLL_ON_GPU
        for (int j = 0; j < kFour; ++j) sums[i][j] += a[i] * b[j];
      }
    }
    __syncthreads();  // all reads of this tile are done before the next k-tile overwrites it
  }
  const Output<T> to = output_of_block(c);
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < 8; ++i) to.row(first_row + row + i % 4 + i / 4 * kTile / 2).put(first_column + column, sums[i]);
  if (sums_rows) row_sum.put(a_tile, row_sums, first_row, c.rows, problem.c.accumulate);
}

/// Where no slices of them would have to be added up.
bool sums_rows(const Args& args) {
  bool whole = false;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const Problem<T> problem(args);
    whole = slices_of(problem, kTileK, kMinKTiles, problem.tiles(kTile, kTile)) == 1;
  });
  return whole;
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.m == 0 || args.n == 0) return;
  if (args.row_sums && !sums_rows(args)) reject_row_sums("tiled", args);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const Problem<T> problem(args);
    simt::Config config{.grid = problem.tiles(kTile, kTile), .block = dim3(kThreads)};
    with_slices(stream, args, problem, kTileK, kMinKTiles, config.grid, [&](const Output<T>& to, int k_tiles) {
      with_layouts(args, [&](auto a_k_major, auto b_k_major) {
        simt::launch<gemm_run_tiled_kernel<T, a_k_major.value, b_k_major.value>>(stream, config, problem, to,
                                                                                 args.row_sums, k_tiles);
      });
    });
  });
}

}  // namespace

Variant tiled() {
  return {.name = "tiled",
          .run = run,
          .supports = lib::supports_cuda_floating,
          .computes = lib::is_floating,
          .workspace_bytes = workspace_bytes(kTile, kTile),
          .sums_rows = sums_rows};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
