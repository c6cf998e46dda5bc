// SPDX-License-Identifier: Apache-2.0
// Idea: implicit GEMM: each pass is a matrix product of views. Tiles of both operands go through shared memory once and
//   serve every thread of the block, and each thread keeps a register tile: 16 vectors from shared memory serve 256
//   multiplications. cp.async fills two k-tiles ahead, from addresses that a thread only moves (gather.cuh).
// Mapping: each block of 128 threads computes 128 x 64, 96 x 32, 64 x 64 or 64 x 32 of C, in k-tiles of 32; thread (t /
//   8, t % 8) has every 16th row and every 8th column, or fours of them, so that a warp hits no bank twice. blockIdx.z:
//   the split-K slice (wgrad), or the offset within a stride (dgrad).
// Traffic and bound: A is read columns / 64 times, B rows / 128 times, mostly from the L2 cache. Bound by the
//   floating-point units.
// Gains over the step before: a number that is loaded serves a tile instead of a strip; wgrad fills the GPU.
// Still slow because: no tensor cores.
// Limits: f32; those of Patches; 2 million columns. What is not gathered (is_gathered) uses the variant direct.

#include "kernels/ops/conv2d/gathered_tile.cuh"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

Variant direct();  // 1_direct.cu

namespace {

constexpr int kThreads = 128;
[[maybe_unused]] constexpr int kBlocksOfSlices = 4;  // of a multiprocessor: with more, registers would be spilled
constexpr int kThreadsDown = 16;
constexpr int kThreadsAcross = 8;
constexpr int kFour = 4;

struct alignas(kFour * sizeof(float)) Four {
  float values[kFour];
};

/// Which rows, or columns, of a tile thread `thread` of `kThreadsInARow` has: of a K-major operand every
/// kThreadsInARow-th, whose swizzled rows are in different banks; else fours of neighbours, which are vectors.
template <class Tile, int kThreadsInARow>
__device__ int index_of(int thread, int i) {
  return Tile::kKMajor ? thread + i * kThreadsInARow : (i / kFour * kThreadsInARow + thread) * kFour + i % kFour;
}

/// fragment[i][j]: that thread's i-th row, or column, at K = k + j.
template <int kThreadsInARow, int kCount, class Tile>
__device__ void load_fragment(float (&fragment)[kCount][kFour], const Tile& tile, int thread, int k) {
  if constexpr (Tile::kKMajor) {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kCount; ++i) {
      const auto four = simt::load_as<Four>(tile.at(index_of<Tile, kThreadsInARow>(thread, i), k));
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < kFour; ++j) fragment[i][j] = four.values[j];
    }
  } else {
    static_assert(kCount % kFour == 0);
    SIMT_UNROLL_ON_GPU
    for (int first = 0; first < kCount; first += kFour) {
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < kFour; ++j) {
        const auto four = simt::load_as<Four>(tile.at(k + j, index_of<Tile, kThreadsInARow>(thread, first)));
        SIMT_UNROLL_ON_GPU
        for (int i = 0; i < kFour; ++i) fragment[first + i][j] = four.values[i];
      }
    }
  }
}

/// A register tile of each thread; A and B say which operand is K-major.
template <int kRowsOfTile, int kColumnsOfTile>
struct RegisterTile {
  static constexpr int kThreads = conv2d::kThreads;
  static constexpr int kRows = kRowsOfTile;
  static constexpr int kColumns = kColumnsOfTile;
  static constexpr int kDown = kRows / kThreadsDown;
  static constexpr int kAcross = kColumns / kThreadsAcross;
};

/// The multiplier of operands that lie so.
template <class Tile, class A, class B>
struct RegisterProduct : Tile {
  static constexpr int kRun = 1;
  using TileA = lib::SwizzledTile<float, Tile::kRows, A::kKMajor>;
  using TileB = lib::SwizzledTile<float, Tile::kColumns, B::kKMajor>;
  struct Sums {
    float of[Tile::kDown][Tile::kAcross] = {};
  };

  __device__ static int down() { return static_cast<int>(threadIdx.x / unsigned{kThreadsAcross}); }
  __device__ static int across() { return static_cast<int>(threadIdx.x % unsigned{kThreadsAcross}); }

  template <class Stages, class P>
  __device__ static void multiply(Sums& sums, Stages& stages, const P& product, int k) {
    for (int left = k; left > 0; left -= kGatheredK<float>) {
      stages.wait();
      __syncthreads();  // the stage is complete, and no thread still reads the one before it, which is filled next
      stages.start_next(product);
      const auto& stage = stages.stage();
      const int end = left < kGatheredK<float> ? left : kGatheredK<float>;
      for (int step = 0; step < end; step += kFour) {
        float a[Tile::kDown][kFour], b[Tile::kAcross][kFour];
        load_fragment<kThreadsDown>(a, stage.a, down(), step);
        load_fragment<kThreadsAcross>(b, stage.b, across(), step);
        SIMT_UNROLL_ON_GPU
        for (int j = 0; j < kFour; ++j) {
          SIMT_UNROLL_ON_GPU
          for (int row = 0; row < Tile::kDown; ++row) {
            SIMT_UNROLL_ON_GPU
            for (int column = 0; column < Tile::kAcross; ++column) sums.of[row][column] += a[row][j] * b[column][j];
          }
        }
      }
      stages.release();
    }
  }

  template <class Visit>
  __device__ static void for_each_run(Sums& sums, Visit visit) {
    SIMT_UNROLL_ON_GPU
    for (int row = 0; row < Tile::kDown; ++row) {
      SIMT_UNROLL_ON_GPU
      for (int column = 0; column < Tile::kAcross; ++column)
        visit(index_of<TileA, kThreadsDown>(down(), row), index_of<TileB, kThreadsAcross>(across(), column),
              &sums.of[row][column]);
    }
  }
};

template <class P, class Tile>
using Multiplier = RegisterProduct<Tile, decltype(P::a), decltype(P::b)>;

template <class Tile, class P, class E>
__global__ void __launch_bounds__(kThreads)
    conv2d_product_tiled_kernel(SIMT_GRID_CONST(Products<P>) products, float* c, E epilogue) {
  const P& product = products.of[blockIdx.z];
  compute_tile<Multiplier<P, Tile>>(product, c, epilogue, lib::KOfBlock::whole(product.k));
}

template <class Tile, class P>
__global__ void __launch_bounds__(kThreads, kBlocksOfSlices)
    conv2d_slice_tiled_kernel(SIMT_GRID_CONST(P) product, float* slices, int k_of_slice) {
  float* const slice = slices + std::int64_t{blockIdx.z} * product.rows * product.columns;
  compute_tile<Multiplier<P, Tile>>(product, slice, NoEpilogue{}, lib::KOfBlock(product.k, k_of_slice));
}

/// What takes least, by the sums of the busiest multiprocessor. Single elements are copied to low tiles alone: each of
/// their rows takes registers of every thread.
struct FloatTiles {
  template <int kVectorBytes, class Visit>
  static void with_tile(std::int64_t rows, std::int64_t columns, int products, Visit visit) {
    const auto cost = [&](std::int64_t tile_rows, std::int64_t tile_columns) {
      const std::int64_t blocks = lib::ceil_div(rows, tile_rows) * lib::ceil_div(columns, tile_columns) * products;
      return lib::ceil_div(blocks, kMultiprocessors) * tile_rows * tile_columns;
    };
    if constexpr (kVectorBytes == 16) {
      const std::int64_t least = std::min({cost(128, 64), cost(64, 64), cost(96, 32), cost(64, 32)});
      if (cost(128, 64) == least) return visit(lib::Element<RegisterTile<128, 64>>());
      if (cost(64, 64) == least) return visit(lib::Element<RegisterTile<64, 64>>());
      if (cost(96, 32) == least) return visit(lib::Element<RegisterTile<96, 32>>());
    }
    visit(lib::Element<RegisterTile<64, 32>>());
  }

  template <int kVectorBytes, class Visit>
  static void with_wgrad_tile(const Geometry& g, Visit visit) {
    if constexpr (kVectorBytes == 16)
      if (g.filter_elements() > 32) return visit(lib::Element<RegisterTile<64, 64>>());
    visit(lib::Element<RegisterTile<64, 32>>());
  }
};

struct Engine {
  using Tiles = FloatTiles;
  using Widest = float;
  static void with_type(DType, auto visit) { visit(lib::Element<float>()); }

  template <class Tile, class P, class C, class E>
  static void run(Stream& stream, dim3 grid, const Products<P>& products, C* c, const E& epilogue) {
    simt::launch<conv2d_product_tiled_kernel<Tile, P, E>>(stream, gathered_config<Multiplier<P, Tile>, P>(grid),
                                                          products, c, epilogue);
  }
  template <class Tile, class P>
  static void run_slices(Stream& stream, dim3 grid, const P& product, float* slices, int k_of_slice) {
    simt::launch<conv2d_slice_tiled_kernel<Tile, P>>(stream, gathered_config<Multiplier<P, Tile>, P>(grid), product,
                                                     slices, k_of_slice);
  }
  static Variant other() { return direct(); }
};
using Passes = GatheredPasses<Engine>;

}  // namespace

Variant tiled() {
  return {"tiled",
          Passes::forward,
          Passes::dgrad,
          Passes::wgrad,
          Passes::workspace_bytes,
          [](const Device& device, DType dtype) {
            return dtype == DType::f32 && lib::supports_cuda_floating(device, dtype);
          },
          [](DType dtype) { return dtype == DType::f32; }};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
