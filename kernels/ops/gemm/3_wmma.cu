// SPDX-License-Identifier: Apache-2.0
// Idea: the same tiles, kept as halves, multiplied by the tensor cores: a warp multiplies 16 x 16 x 16 at once (WMMA).
//   How a factor lies in memory is told to the load of a fragment, so that nothing is turned over.
// Mapping: a block of 4 warps per 64 x 64 tile of C, 32 inner indices at a time; a warp per quarter, 32 x 32 as 2 x 2
//   fragments. Threads load pieces of 8 elements, 16 bytes.
// Traffic and bound: memory as in the step before, half the bytes in shared memory. 4 fragments loaded for 4 products
//   of 16^3: bound by shared memory, and by waiting for memory between the barriers.
// Gains over the step before: 4,096 multiplications an instruction instead of 32.
// Still slow because: loading and multiplying take turns, and which element a lane holds is a secret of WMMA: sums go
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
constexpr int kInner = 32;
constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kFragment = 16;
[[maybe_unused]] constexpr int kBlocksOfProcessor = 6;  // at most 80 registers: left alone, nvcc takes 56 and spills
constexpr int kHalf = kTile / 2;                        // of a warp, in both directions
constexpr int kFragments = kHalf / kFragment;

template <bool kAlong>
struct Tile : TileShape<kTile, kInner, kAlong> {
  static constexpr int kPitch = Tile::kColumns + 8;  // 8 rows of a piece each lie in different banks
  static constexpr int kElements = Tile::kRows * kPitch;
  /// Where the element of these indices lies.
  __device__ static constexpr int at(int outer, int inner) {
    return kAlong ? outer * kPitch + inner : inner * kPitch + outer;
  }
};

template <bool kAlong, class T>
__device__ void load_tile(const Matrix<T>& from, int first_outer, int first_inner, T* tile) {
  using Shape = Tile<kAlong>;
  const int first_row = kAlong ? first_outer : first_inner;
  const int first_column = kAlong ? first_inner : first_outer;
  for (int i = static_cast<int>(threadIdx.x); i < Shape::kPieces; i += kThreads) {
    const int row = i / (Shape::kColumns / kPiece);
    const int column = i % (Shape::kColumns / kPiece) * kPiece;
    simt::store_as<Piece<T>>(tile + row * Shape::kPitch + column, from.piece(first_row + row, first_column + column));
  }
}

using Sums = wmma::fragment<wmma::accumulator, kFragment, kFragment, kFragment, float>;

/// Writes a warp's sums to C by way of `stage`.
template <class T>
__device__ void write(const Sums (&sums)[kFragments][kFragments], int first_row, int first_column,
                      float (&stage)[kFragment][kFragment + 4], const Output<T>& c) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  SIMT_UNROLL
  for (int i = 0; i < kFragments; ++i) {
    SIMT_UNROLL
    for (int j = 0; j < kFragments; ++j) {
      wmma::store_matrix_sync(&stage[0][0], sums[i][j], kFragment + 4, wmma::mem_row_major);
      __syncwarp();  // all lanes have stored
      for (int at = lane; at < kFragment * kFragment; at += 32)
        c.put(first_row + i * kFragment + at / kFragment, first_column + j * kFragment + at % kFragment,
              stage[at / kFragment][at % kFragment]);
      __syncwarp();  // all reads are done before the next fragment overwrites
    }
  }
}

template <class T, bool kAAlong, bool kBAlong>
__global__ void __launch_bounds__(kThreads, kBlocksOfProcessor)
    gemm_run_wmma_kernel(SIMT_GRID_CONST(Problem<T>) problem) {
  using A = Tile<kAAlong>;
  using B = Tile<kBAlong>;
  using Rows = wmma::row_major;
  using Columns = wmma::col_major;
  SIMT_SHARED(T[A::kElements], a_tile);
  SIMT_SHARED(T[B::kElements], b_tile);
  using Stages = float[kWarps][kFragment][kFragment + 4];
  SIMT_SHARED(Stages, stages);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int first_row = static_cast<int>(blockIdx.x) * kTile;
  const int first_column = static_cast<int>(blockIdx.y) * kTile;
  const int row = warp / 2 * kHalf;
  const int column = warp % 2 * kHalf;
  Sums sums[kFragments][kFragments];
  for (auto& of_row : sums)
    for (auto& tile : of_row) wmma::fill_fragment(tile, 0.0f);
  for (int first = 0; first < problem.inner; first += kInner) {
    load_tile<kAAlong>(problem.a, first_row, first, a_tile);
    load_tile<kBAlong>(problem.b, first_column, first, b_tile);
    __syncthreads();  // both tiles are complete
    for (int inner = 0; inner < kInner; inner += kFragment) {
      wmma::fragment<wmma::matrix_a, kFragment, kFragment, kFragment, T, std::conditional_t<kAAlong, Rows, Columns>>
          a[kFragments];
      wmma::fragment<wmma::matrix_b, kFragment, kFragment, kFragment, T, std::conditional_t<kBAlong, Columns, Rows>>
          b[kFragments];
      for (int i = 0; i < kFragments; ++i) {
        wmma::load_matrix_sync(a[i], a_tile + A::at(row + i * kFragment, inner), A::kPitch);
        wmma::load_matrix_sync(b[i], b_tile + B::at(column + i * kFragment, inner), B::kPitch);
      }
      for (int i = 0; i < kFragments; ++i)
        for (int j = 0; j < kFragments; ++j) wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
    }
    __syncthreads();  // all reads of this tile are done before the next round overwrites it
  }
  write(sums, first_row + row, first_column + column, stages[warp], problem.c);
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.m == 0 || args.n == 0) return;
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    const Problem<T> problem(args);
    const simt::Config config{.grid = problem.tiles(kTile, kTile), .block = dim3(kThreads)};
    with_storage(args, [&](auto a_along, auto b_along) {
      simt::launch<gemm_run_wmma_kernel<T, a_along.value, b_along.value>>(stream, config, problem);
    });
  });
}

}  // namespace

Variant wmma_fragments() { return {"wmma", run, lib::supports_cuda_half, lib::is_half}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
