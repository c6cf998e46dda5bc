// SPDX-License-Identifier: Apache-2.0
// Idea: the same tiles, kept in 16 bits, multiplied by the tensor cores: a warp multiplies 16 x 16 x 16 at once (WMMA).
//   The load of a fragment is told whether its tile is row-major or column-major, so that nothing is transposed.
// Mapping: each block of 4 warps computes 64 x 64 of C, in k-tiles of 32; each warp a quarter, 32 x 32 as 2 x 2
//   fragments. Threads load 16-byte vectors.
// Traffic and bound: memory as in the step before, half the bytes in shared memory. 4 fragments loaded for 4 products
//   of 16^3: bound by shared memory, and by waiting for memory between the barriers.
// Gains over the step before: 4,096 multiplications an instruction instead of 32.
// Still slow because: loading and multiplying take turns, and WMMA does not say which lane holds which sum: sums go
//   through shared memory once more to reach C.
// Limits: f16 and bf16; m, k <= 2^30, 65,535 tiles of columns.

#include "kernels/ops/gemm/gemm.h"
#include "kernels/ops/gemm/tiles.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {
namespace {

namespace wmma = nvcuda::wmma;

constexpr int kTile = 64;
constexpr int kTileK = 32;
constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kFragment = 16;
[[maybe_unused]] constexpr int kBlocksOfMultiprocessor =
    6;                            // at most 80 registers: left alone, nvcc takes 56 and spills
constexpr int kHalf = kTile / 2;  // of a warp, in both directions
constexpr int kFragments = kHalf / kFragment;

template <bool kKMajor>
struct Tile : TileShape<kTile, kTileK, kKMajor> {
  static constexpr int kPitch = Tile::kColumns + 8;  // one vector more: 8 rows of a vector lie in different banks
  static constexpr int kElements = Tile::kRows * kPitch;
  __device__ static constexpr int at(int mn, int k) { return kKMajor ? mn * kPitch + k : k * kPitch + mn; }
};

template <bool kKMajor, class T>
__device__ void load_tile(const Matrix<T>& from, int first_mn, int first_k, T* tile) {
  using Shape = Tile<kKMajor>;
  const int first_row = kKMajor ? first_mn : first_k;
  const int first_column = kKMajor ? first_k : first_mn;
  for (int i = static_cast<int>(threadIdx.x); i < Shape::kVectors; i += kThreads) {
    const int row = i / (Shape::kColumns / lib::kVectorElements);
    const int column = i % (Shape::kColumns / lib::kVectorElements) * lib::kVectorElements;
    simt::store_as<Vector<T>>(tile + row * Shape::kPitch + column, from.vector(first_row + row, first_column + column));
  }
}

using Sums = wmma::fragment<wmma::accumulator, kFragment, kFragment, kFragment, float>;

/// Writes a warp's sums to C through `buffer` in shared memory.
template <class T>
__device__ void write(const Sums (&sums)[kFragments][kFragments], int first_row, int first_column,
                      float (&buffer)[kFragment][kFragment + 4], const Output<T>& c) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  SIMT_UNROLL
  for (int i = 0; i < kFragments; ++i) {
    SIMT_UNROLL
    for (int j = 0; j < kFragments; ++j) {
      wmma::store_matrix_sync(&buffer[0][0], sums[i][j], kFragment + 4, wmma::mem_row_major);
      __syncwarp();  // all lanes have stored
      for (int at = lane; at < kFragment * kFragment; at += 32)
        c.put(first_row + i * kFragment + at / kFragment, first_column + j * kFragment + at % kFragment,
              buffer[at / kFragment][at % kFragment]);
      __syncwarp();  // all reads are done before the next fragment overwrites
    }
  }
}

template <class T, bool kAKMajor, bool kBKMajor>
__global__ void __launch_bounds__(kThreads, kBlocksOfMultiprocessor)
    gemm_run_wmma_kernel(SIMT_GRID_CONST(Problem<T>) problem) {
  using A = Tile<kAKMajor>;
  using B = Tile<kBKMajor>;
  using Rows = wmma::row_major;
  using Columns = wmma::col_major;
  SIMT_SHARED(T[A::kElements], a_tile);
  SIMT_SHARED(T[B::kElements], b_tile);
  using Buffers = float[kWarps][kFragment][kFragment + 4];
  SIMT_SHARED(Buffers, buffers);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int first_row = static_cast<int>(blockIdx.x) * kTile;
  const int first_column = static_cast<int>(blockIdx.y) * kTile;
  const int row = warp / 2 * kHalf;
  const int column = warp % 2 * kHalf;
  Sums sums[kFragments][kFragments];
  for (auto& of_row : sums)
    for (auto& tile : of_row) wmma::fill_fragment(tile, 0.0f);
  for (int first_k = 0; first_k < problem.k; first_k += kTileK) {
    load_tile<kAKMajor>(problem.a, first_row, first_k, a_tile);
    load_tile<kBKMajor>(problem.b, first_column, first_k, b_tile);
    __syncthreads();  // both tiles are complete
    for (int k = 0; k < kTileK; k += kFragment) {
      wmma::fragment<wmma::matrix_a, kFragment, kFragment, kFragment, T, std::conditional_t<kAKMajor, Rows, Columns>>
          a[kFragments];
      wmma::fragment<wmma::matrix_b, kFragment, kFragment, kFragment, T, std::conditional_t<kBKMajor, Columns, Rows>>
          b[kFragments];
      for (int i = 0; i < kFragments; ++i) {
        wmma::load_matrix_sync(a[i], a_tile + A::at(row + i * kFragment, k), A::kPitch);
        wmma::load_matrix_sync(b[i], b_tile + B::at(column + i * kFragment, k), B::kPitch);
      }
      for (int i = 0; i < kFragments; ++i)
        for (int j = 0; j < kFragments; ++j) wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
    }
    __syncthreads();  // all reads of this tile are done before the next k-tile overwrites it
  }
  write(sums, first_row + row, first_column + column, buffers[warp], problem.c);
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.m == 0 || args.n == 0) return;
  reject_row_sums("wmma", args);
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    const Problem<T> problem(args);
    const simt::Config config{.grid = problem.tiles(kTile, kTile), .block = dim3(kThreads)};
    with_layouts(args, [&](auto a_k_major, auto b_k_major) {
      simt::launch<gemm_run_wmma_kernel<T, a_k_major.value, b_k_major.value>>(stream, config, problem);
    });
  });
}

}  // namespace

Variant wmma_fragments() { return {"wmma", run, lib::supports_cuda_half, lib::is_half}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
