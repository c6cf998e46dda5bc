// SPDX-License-Identifier: Apache-2.0
// Idea: warp specialization, as Hopper wants it. One producer warp only has TMA copy boxes into a multi-stage buffer in
//   shared memory; two consumer warpgroups only have wgmma multiply them from there. They synchronize by mbarriers,
//   each warp for the stage that it needs, the block never as a whole.
// Mapping: each block of 8 consumer warps and a producer warp computes 128 x 128 of C, in k-tiles of 64, three stages,
//   two blocks a multiprocessor; each warpgroup 64 x 128. blockIdx.z: the split-K slice.
// Traffic and bound: 2 k elements for 128 x 128 sums. A product of 64 x 128 x 16 reads 6 KB of shared memory in 64
//   cycles of the tensor cores, three quarters of its bandwidth: bound by the tensor cores for large products, for
//   small ones by launch and latency, as the step before.
// Gains over the step before: wgmma is the only instruction that can keep sm_90's tensor cores busy; no warp that
//   multiplies computes an address, no fragment goes through registers, no barrier stops a block.
// Still slow because: a 64 x 256 product would read a fifth less; blocks of a cluster could share what they load; a
//   block writes its sums while its own stages are empty, and only the other block on the multiprocessor works.
// Limits: compute capability 9.0 alone; f16 and bf16. Operands whose rows are not multiples of 16 bytes, and K = 0, use
//   the variant mma.

#include "kernels/lib/bulk_tensor.h"
#include "kernels/lib/warpgroup_mma.h"
#include "kernels/ops/gemm/gemm.h"
#include "kernels/ops/gemm/tiles.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {

/// A k-tile of an operand in shared memory, as TMA writes it and wgmma reads it: boxes of 64 (M or N) x 64 (K) elements
/// one after the other, each with 64 swizzled rows of 128 bytes in memory's order. A box has one size whether the
/// operand is K-major or not, so the rest of the kernel need not know.
template <bool kKMajor>
struct WgmmaTile {
  static constexpr int kBox = simt::kSwizzledRowWords;  // in both directions
  static constexpr int kElementsOfBox = kBox * kBox;
  static constexpr bool kTransposed = !kKMajor;

  template <class T>
  static simt::TensorMap map(const Matrix<T>& from) {
    return simt::make_tensor_map(simt::TensorBox{from.data, from.rows, from.columns, kBox});
  }

  /// Starts to copy `boxes` boxes along M or N. One thread.
  template <class T>
  __device__ static void start(const simt::TensorMap& from, int first_mn, int first_k, int boxes, T* tile,
                               lib::Mbarrier& landed) {
    for (int box = 0; box < boxes; ++box) {
      const int mn = first_mn + box * kBox;
      lib::bulk_load(tile + box * kElementsOfBox, from, kKMajor ? mn : first_k, kKMajor ? first_k : mn, landed);
    }
  }

  /// K = [k, k + 16) of the boxes from `tile` on.
  template <class T>
  __device__ static simt::MatrixDescriptor operand(const T* tile, int k) {
    const T* first = tile + (kKMajor ? k : k * kBox);
    return simt::MatrixDescriptor::of(lib::shared_address(first), kElementsOfBox * sizeof(T),
                                      simt::kSwizzlePatternBytes);
  }
};

Variant mma();  // 4_mma.cu

namespace {

constexpr int kTileRows = 128;
constexpr int kTileColumns = 128;
constexpr int kTileK = 64;
constexpr int kStages = 3;
[[maybe_unused]] constexpr int kBlocksOfMultiprocessor = 2;  // a CPU has no such bounds
constexpr int kGroupWarps = 4;
constexpr int kGroupRows = 64;
constexpr int kConsumers = kTileRows / kGroupRows * kGroupWarps;  // warps
constexpr int kThreads = 32 * (kConsumers + 1);
constexpr int kMinKTiles = kStages;  // of a slice: what fills the stages once

template <class T>
struct Stage {
  T a[kTileRows * kTileK], b[kTileColumns * kTileK];
};
using Pipe = lib::BarrierPipe<kStages>;

/// The stages, and what it takes to align them to a swizzle pattern.
template <class T>
constexpr std::size_t kSharedBytes = kStages * sizeof(Stage<T>) + simt::kSwizzlePatternBytes - 1;

/// The producer's part: fills the stages as they become free.
template <class A, class B, class T>
__device__ void fill(const simt::TensorMap& a, const simt::TensorMap& b, const KTilesOfBlock& k_tiles, Stage<T>* stages,
                     Pipe& pipe) {
  const int first_row = static_cast<int>(blockIdx.x) * kTileRows;
  const int first_column = static_cast<int>(blockIdx.y) * kTileColumns;
  for (int k_tile = 0; k_tile < k_tiles.count; ++k_tile) {
    Stage<T>& stage = stages[k_tile % kStages];
    const int k = (k_tiles.first + k_tile) * kTileK;
    lib::Mbarrier& landed = pipe.begin_fill(k_tile, sizeof stage);
    A::start(a, first_row, k, kTileRows / A::kBox, stage.a, landed);
    B::start(b, first_column, k, kTileColumns / B::kBox, stage.b, landed);
  }
}

/// A consumer's part: the sums of its warpgroup.
template <class A, class B, class T>
__device__ void multiply(float (&sums)[lib::kSumsOf64x128], int group, bool elected, const KTilesOfBlock& k_tiles,
                         const Stage<T>* stages, Pipe& pipe) {
  lib::warpgroup_expose(sums);
  for (int k_tile = 0; k_tile < k_tiles.count; ++k_tile) {
    pipe.wait_filled(k_tile);
    const Stage<T>& stage = stages[k_tile % kStages];
    const T* rows = stage.a + group * A::kElementsOfBox;
    lib::warpgroup_fence();
    SIMT_UNROLL_ON_GPU
    for (int k = 0; k < kTileK; k += 16)
      lib::warpgroup_mma_m64n128k16<T, A::kTransposed, B::kTransposed>(sums, A::operand(rows, k),
                                                                       B::operand(stage.b, k));
    lib::warpgroup_commit();
    lib::warpgroup_wait<1>();  // the k-tile before is multiplied, while this one runs: its stage may be filled again
    if (elected && k_tile > 0) pipe.release(k_tile - 1);
  }
  lib::warpgroup_wait_for(sums);
}

template <class T, bool kAKMajor, bool kBKMajor>
__global__ void __launch_bounds__(kThreads, kBlocksOfMultiprocessor)
    gemm_run_wgmma_kernel(SIMT_GRID_CONST(simt::TensorMap) a, SIMT_GRID_CONST(simt::TensorMap) b,
                          SIMT_GRID_CONST(Output<T>) c, int k, int k_tiles_of_slice) {
  using A = WgmmaTile<kAKMajor>;
  using B = WgmmaTile<kBKMajor>;
  SIMT_DYNAMIC_SHARED(unsigned char, memory);
  SIMT_SHARED(Pipe, pipe);
  auto* stages = reinterpret_cast<Stage<T>*>(lib::align_shared<simt::kSwizzlePatternBytes>(memory));
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const KTilesOfBlock k_tiles(k, kTileK, k_tiles_of_slice);
  if (threadIdx.x == 0) pipe.init(kConsumers);
  __syncthreads();  // the pipe's barriers are initialised

  if (warp == kConsumers) {
    if (lane == 0) fill<A, B>(a, b, k_tiles, stages, pipe);
    return;
  }
  const int group = warp / kGroupWarps;
  float sums[lib::kSumsOf64x128] = {};
  multiply<A, B>(sums, group, lane == 0, k_tiles, stages, pipe);

  const Output<T> to = output_of_block(c);
  const int first_row = static_cast<int>(blockIdx.x) * kTileRows + group * kGroupRows;
  const int first_column = static_cast<int>(blockIdx.y) * kTileColumns;
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < lib::kSumsOf64x128; i += 2) {
    const simt::Position position =
        simt::warpgroup_position_in_d(static_cast<int>(threadIdx.x) % (32 * kGroupWarps), i);
    to.put_pair(first_row + position.row, first_column + position.column, sums[i], sums[i + 1]);
  }
}

/// Operands that TMA cannot copy, and K = 0, use the variant mma.
template <class T>
bool needs_mma(const Problem<T>& problem) {
  return !problem.a.aligned || !problem.b.aligned || problem.k == 0;
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.m == 0 || args.n == 0) return;
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    const Problem<T> problem(args);
    if (needs_mma(problem)) return mma().run(stream, args);
    simt::Config config{
        .grid = problem.tiles(kTileRows, kTileColumns), .block = dim3(kThreads), .shared_bytes = kSharedBytes<T>};
    with_slices(stream, args, problem, kTileK, kMinKTiles, config.grid, [&](const Output<T>& to, int k_tiles) {
      with_layouts(args, [&](auto a_k_major, auto b_k_major) {
        simt::launch<gemm_run_wgmma_kernel<T, a_k_major.value, b_k_major.value>>(
            stream, config, WgmmaTile<a_k_major.value>::map(problem.a), WgmmaTile<b_k_major.value>::map(problem.b), to,
            problem.k, k_tiles);
      });
    });
  });
}

}  // namespace

Variant wgmma() {
  return {.name = "wgmma",
          .run = run,
          .supports = lib::supports_hopper_half,
          .computes = lib::is_half,
          .workspace_bytes = workspace_bytes(kTileRows, kTileColumns)};  // more than mma needs
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
