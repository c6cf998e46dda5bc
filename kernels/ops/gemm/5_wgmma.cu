// SPDX-License-Identifier: Apache-2.0
// Idea: Hopper's own way. One warp does nothing but tell the copy engine (TMA) which boxes to bring; two groups of four
//   warps do nothing but tell the tensor cores (wgmma) which boxes to multiply, straight from shared memory. They meet
//   at barriers in shared memory (mbarrier), each warp for the stage that it needs, the block never as a whole.
// Mapping: 8 consuming warps and a producing one per 128 x 128 tile of C, 64 inner indices a round, three rounds in
//   shared memory, two blocks a processor; four warps per 64 x 128. blockIdx.z: the share of the inner index.
// Traffic and bound: 2 k elements for 128 x 128 sums. A product of 64 x 128 x 16 reads 6 KB of shared memory in 64
//   cycles of the tensor cores, three quarters of what it can give: bound by the tensor cores for large products, for
//   small ones by launch and latency, as the step before.
// Gains over the step before: wgmma is the only instruction that can keep sm_90's tensor cores busy; no address is
//   computed by a warp that multiplies, no fragment goes through registers, no barrier stops a block.
// Still slow because: a 64 x 256 product would read a fifth less; blocks of a cluster could share what they load; a
//   block writes its sums while its own stages stand empty, and only its neighbour on the processor works.
// Limits: compute capability 9.0 alone; f16 and bf16. Factors whose rows are not multiples of 16 bytes, and empty sums,
//   use the variant mma.

#include "kernels/lib/bulk_tensor.h"
#include "kernels/lib/warpgroup_mma.h"
#include "kernels/ops/gemm/gemm.h"
#include "kernels/ops/gemm/tiles.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {

/// A tile of a factor in shared memory, as TMA lays it down and wgmma takes it: boxes of 64 outer x 64 inner indices
/// one after the other, each with 64 swizzled rows of 128 bytes in memory's order. A box has one size however the
/// factor is stored, so the rest of the kernel need not know.
template <bool kAlong>
struct WgmmaTile {
  static constexpr int kBox = simt::kSwizzledRowWords;  // in both directions
  static constexpr int kElementsOfBox = kBox * kBox;
  static constexpr bool kTransposed = !kAlong;

  /// The boxes of `from`.
  template <class T>
  static simt::TensorMap map(const Matrix<T>& from) {
    return simt::make_tensor_map(simt::TensorBox{from.data, from.rows, from.columns, kBox});
  }

  /// Starts to copy `boxes` boxes along the outer index. One thread.
  template <class T>
  __device__ static void start(const simt::TensorMap& from, int first_outer, int first_inner, int boxes, T* tile,
                               lib::Mbarrier& landed) {
    for (int box = 0; box < boxes; ++box) {
      const int outer = first_outer + box * kBox;
      lib::bulk_load(tile + box * kElementsOfBox, from, kAlong ? outer : first_inner, kAlong ? first_inner : outer,
                     landed);
    }
  }

  /// 16 inner indices of the boxes from `tile` on.
  template <class T>
  __device__ static simt::MatrixDescriptor operand(const T* tile, int inner) {
    const T* first = tile + (kAlong ? inner : inner * kBox);
    return simt::MatrixDescriptor::of(lib::shared_address(first), kElementsOfBox * sizeof(T),
                                      simt::kSwizzlePatternBytes);
  }
};

Variant mma();  // 4_mma.cu

namespace {

constexpr int kTileRows = 128;
constexpr int kTileColumns = 128;
constexpr int kInner = 64;
constexpr int kStages = 3;
[[maybe_unused]] constexpr int kBlocksOfProcessor = 2;  // a CPU has no such bounds
constexpr int kGroupWarps = 4;
constexpr int kGroupRows = 64;
constexpr int kConsumers = kTileRows / kGroupRows * kGroupWarps;  // warps
constexpr int kThreads = 32 * (kConsumers + 1);
constexpr int kLeastRoundsOfAShare = kStages;

template <class T>
struct Stage {
  T a[kTileRows * kInner], b[kTileColumns * kInner];
};
using Pipe = lib::BarrierPipe<kStages>;

/// The room of the stages, and what it takes to let them begin with a pattern of the swizzle.
template <class T>
constexpr std::size_t kSharedBytes = kStages * sizeof(Stage<T>) + simt::kSwizzlePatternBytes - 1;

/// The producer's part: fills the stages as they become free.
template <class A, class B, class T>
__device__ void fill(const simt::TensorMap& a, const simt::TensorMap& b, const RoundsOfBlock& rounds, Stage<T>* stages,
                     Pipe& pipe) {
  const int first_row = static_cast<int>(blockIdx.x) * kTileRows;
  const int first_column = static_cast<int>(blockIdx.y) * kTileColumns;
  for (int round = 0; round < rounds.count; ++round) {
    Stage<T>& stage = stages[round % kStages];
    const int inner = (rounds.first + round) * kInner;
    lib::Mbarrier& landed = pipe.begin_fill(round, sizeof stage);
    A::start(a, first_row, inner, kTileRows / A::kBox, stage.a, landed);
    B::start(b, first_column, inner, kTileColumns / B::kBox, stage.b, landed);
  }
}

/// A consumer's part: the sums of its group of warps.
template <class A, class B, class T>
__device__ void multiply(float (&sums)[lib::kSumsOf64x128], int group, bool speaks, const RoundsOfBlock& rounds,
                         const Stage<T>* stages, Pipe& pipe) {
  lib::warpgroup_expose(sums);
  for (int round = 0; round < rounds.count; ++round) {
    pipe.wait_filled(round);
    const Stage<T>& stage = stages[round % kStages];
    const T* rows = stage.a + group * A::kElementsOfBox;
    lib::warpgroup_fence();
    SIMT_UNROLL_ON_GPU
    for (int inner = 0; inner < kInner; inner += 16)
      lib::warpgroup_mma_m64n128k16<T, A::kTransposed, B::kTransposed>(sums, A::operand(rows, inner),
                                                                       B::operand(stage.b, inner));
    lib::warpgroup_commit();
    lib::warpgroup_wait<1>();  // the round before is multiplied, while this one runs: its stage may be filled again
    if (speaks && round > 0) pipe.release(round - 1);
  }
  lib::warpgroup_wait_for(sums);
}

template <class T, bool kAAlong, bool kBAlong>
__global__ void __launch_bounds__(kThreads, kBlocksOfProcessor)
    gemm_run_wgmma_kernel(SIMT_GRID_CONST(simt::TensorMap) a, SIMT_GRID_CONST(simt::TensorMap) b,
                          SIMT_GRID_CONST(Output<T>) c, int inner, int rounds_of_share) {
  using A = WgmmaTile<kAAlong>;
  using B = WgmmaTile<kBAlong>;
  SIMT_DYNAMIC_SHARED(unsigned char, memory);
  SIMT_SHARED(Pipe, pipe);
  auto* stages = reinterpret_cast<Stage<T>*>(lib::align_shared<simt::kSwizzlePatternBytes>(memory));
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const RoundsOfBlock rounds(inner, kInner, rounds_of_share);
  if (threadIdx.x == 0) pipe.init(kConsumers);
  __syncthreads();  // the pipe's barriers are initialised

  if (warp == kConsumers) {
    if (lane == 0) fill<A, B>(a, b, rounds, stages, pipe);
    return;
  }
  const int group = warp / kGroupWarps;
  float sums[lib::kSumsOf64x128] = {};
  multiply<A, B>(sums, group, lane == 0, rounds, stages, pipe);

  const Output<T> to = output_of_block(c);
  const int first_row = static_cast<int>(blockIdx.x) * kTileRows + group * kGroupRows;
  const int first_column = static_cast<int>(blockIdx.y) * kTileColumns;
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < lib::kSumsOf64x128; i += 2) {
    const simt::Place place = simt::warpgroup_place_in_d(static_cast<int>(threadIdx.x) % (32 * kGroupWarps), i);
    to.put_pair(first_row + place.row, first_column + place.column, sums[i], sums[i + 1]);
  }
}

/// Operands that TMA cannot copy, and products without an inner index, use the variant mma.
template <class T>
bool needs_mma(const Problem<T>& problem) {
  return !problem.a.wide || !problem.b.wide || problem.inner == 0;
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.m == 0 || args.n == 0) return;
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    const Problem<T> problem(args);
    if (needs_mma(problem)) return mma().run(stream, args);
    simt::Config config{
        .grid = problem.tiles(kTileRows, kTileColumns), .block = dim3(kThreads), .shared_bytes = kSharedBytes<T>};
    const Shares shares(problem.inner, kInner, kLeastRoundsOfAShare, std::int64_t{config.grid.x} * config.grid.y);
    config.grid.z = static_cast<unsigned>(shares.count);
    with_shares(stream, args, problem.c, shares, [&](const Output<T>& to) {
      with_storage(args, [&](auto a_along, auto b_along) {
        simt::launch<gemm_run_wgmma_kernel<T, a_along.value, b_along.value>>(
            stream, config, WgmmaTile<a_along.value>::map(problem.a), WgmmaTile<b_along.value>::map(problem.b), to,
            problem.inner, shares.rounds);
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
          .workspace_bytes = share_bytes(kTileRows, kTileColumns)};  // more than mma needs
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
