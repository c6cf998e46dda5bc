// SPDX-License-Identifier: Apache-2.0
// Idea: implicit GEMM: each pass is a matrix product of views (products.cuh). Tiles of both operands go through shared
//   memory once and serve every thread of the block; 16 numbers from shared memory serve 64 multiplications.
// Mapping: each block of 128 threads computes 128 x 64 of C, each thread 8 x 8 elements: thread (t / 8, t % 8) has rows
//   and columns in fours, 64 rows and 32 columns apart, so that a warp reads neighbouring fours. blockIdx.z: the
//   split-K slice (wgrad).
// Traffic and bound: A is read columns / 64 times, B rows / 128 times, mostly from the L2 cache; 21 operations for each
//   byte of a tile in f32. Bound by the floating-point units, and by shared memory behind them.
// Gains over the step before: a number that is loaded serves a tile instead of a strip; wgrad fills the GPU.
// Still slow because: no tensor cores; nothing is loaded while a tile is being multiplied but by other blocks.
// Limits: those of Patches; 4 million columns.

#include "kernels/ops/conv2d/products.cuh"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr TileShape kTile{.rows = 128, .columns = 64, .k = 16};
constexpr int kThreads = 128;
constexpr int kFour = 4;           // neighbours that a thread loads, and multiplies, together
constexpr int kPad = 4;            // keeps rows of a tile in shared memory apart by other than a multiple of all banks
constexpr int kSums = 2 * kFour;   // of a thread each way
constexpr int kThreadColumns = 8;  // threads side by side

template <class T>
struct alignas(kFour * sizeof(T)) Four {
  T values[kFour];
};

template <class Operand>
__device__ Four<float> load_four(const Operand& from, const typename Operand::Row& row, int first) {
  using T = typename Operand::Element;
  Four<float> four = {};
  if (from.aligned) {
    if (const T* here = from.at(row, from.column(first))) {
      const auto loaded = simt::load_as<Four<T>>(here);
      for (int i = 0; i < kFour; ++i) four.values[i] = lib::to_f32(loaded.values[i]);
    }
    return four;
  }
  for (int i = 0; i < kFour; ++i)
    if (const T* here = from.at(row, from.column(first + i))) four.values[i] = lib::to_f32(*here);
  return four;
}

/// tile[k][mn], whether the operand is K-major or not.
template <int kMN, class Operand>
__device__ void load_tile(float (&tile)[kTile.k][kMN + kPad], const Operand& from, int first_mn, int first_k) {
  constexpr int kFoursOfRow = (Operand::kKMajor ? kTile.k : kMN) / kFour;
  for (int i = static_cast<int>(threadIdx.x); i < kMN * kTile.k / kFour; i += kThreads) {
    const int row = i / kFoursOfRow;
    const int column = i % kFoursOfRow * kFour;
    if constexpr (Operand::kKMajor) {
      const Four<float> four = load_four(from, from.row(first_mn + row), first_k + column);
      for (int j = 0; j < kFour; ++j) tile[column + j][row] = four.values[j];
    } else {
      const Four<float> four = load_four(from, from.row(first_k + row), first_mn + column);
      simt::store_as(&tile[row][column], four);
    }
  }
}

/// The row (or column) in the tile of a thread's i-th sum, of `extent` rows (or columns) in all.
__device__ int index_of(int thread, int i, int extent) { return i / kFour * (extent / 2) + thread * kFour + i % kFour; }

template <class C, class P>
__global__ void __launch_bounds__(kThreads)
    conv2d_product_tiled_kernel(SIMT_GRID_CONST(P) product, C* __restrict__ c, int k_of_slice) {
  using TileA = float[kTile.k][kTile.rows + kPad];
  using TileB = float[kTile.k][kTile.columns + kPad];
  SIMT_SHARED(TileA, tile_a);
  SIMT_SHARED(TileB, tile_b);
  const int thread_row = static_cast<int>(threadIdx.x) / kThreadColumns;
  const int thread_column = static_cast<int>(threadIdx.x) % kThreadColumns;
  const int first_row = static_cast<int>(blockIdx.x) * kTile.rows;
  const int first_column = static_cast<int>(blockIdx.y) * kTile.columns;
  const lib::KOfBlock k_range(product.k, k_of_slice);
  float sums[kSums][kSums] = {};
  for (int first_k = k_range.begin; first_k < k_range.end; first_k += kTile.k) {
    load_tile<kTile.rows>(tile_a, product.a, first_row, first_k);
    load_tile<kTile.columns>(tile_b, product.b, first_column, first_k);
    __syncthreads();  // both tiles are complete
    SIMT_UNROLL_ON_GPU
    for (int k = 0; k < kTile.k; ++k) {
      Four<float> a[kSums / kFour], b[kSums / kFour];
      SIMT_UNROLL_ON_GPU
      for (int f = 0; f < kSums / kFour; ++f) {
        a[f] = simt::load_as<Four<float>>(&tile_a[k][index_of(thread_row, f * kFour, kTile.rows)]);
        b[f] = simt::load_as<Four<float>>(&tile_b[k][index_of(thread_column, f * kFour, kTile.columns)]);
      }
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kSums; ++i) {
        SIMT_UNROLL_ON_GPU
        for (int j = 0; j < kSums; ++j) sums[i][j] += a[i / kFour].values[i % kFour] * b[j / kFour].values[j % kFour];
      }
    }
    __syncthreads();  // all reads are done before the next k-tile overwrites them
  }
  C* slice = c + std::int64_t{blockIdx.z} * product.rows * product.columns;
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < kSums; ++i) {
    const int row = first_row + index_of(thread_row, i, kTile.rows);
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < kSums; ++j) {
      const int column = first_column + index_of(thread_column, j, kTile.columns);
      if (row < product.rows && column < product.columns)
        slice[std::int64_t{row} * product.columns + column] = lib::from_f32<C>(sums[i][j]);
    }
  }
}

struct Step {
  static void with_type(DType dtype, auto visit) { lib::with_element(dtype, visit); }
  static TileShape wgrad_tile(const Geometry&) { return kTile; }

  template <class C, class P>
  static void enqueue(Stream& stream, const P& product, C* c, int slices) {
    const simt::Config config{.grid = grid_of(product.rows, product.columns, kTile, slices), .block = dim3(kThreads)};
    simt::launch<conv2d_product_tiled_kernel<C, P>>(stream, config, product, c, k_of_slice(product.k, kTile, slices));
  }
};
using Passes = ProductPasses<Step>;

}  // namespace

Variant tiled() {
  return {"tiled",         Passes::forward,         Passes::dgrad,
          Passes::wgrad,   Passes::workspace_bytes, lib::supports_cuda_floating,
          lib::is_floating};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
