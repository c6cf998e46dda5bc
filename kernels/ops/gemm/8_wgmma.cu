// SPDX-License-Identifier: Apache-2.0
// Idea: warp specialization, as Hopper wants it. One producer warp only has TMA copy boxes into a multi-stage buffer in
//   shared memory; consumer warpgroups only have wgmma multiply them from there. They synchronize by mbarriers, each
//   warp for the stage that it needs, the block never as a whole.
// Mapping: a large C: each block of 8 consumer warps and a producer warp computes 128 x 128 of C, in k-tiles of 64,
//   three stages, two blocks a multiprocessor; each warpgroup 64 x 128. A C of too few such tiles: 4 consumer warps,
//   64 x 64, four stages; and if these are too few, blockIdx.z is the split-K slice. Row sums of A are products with a
//   matrix of ones, 8 columns wide, which is in shared memory.
// Traffic and bound: 2 k elements for 128 x 128 sums. A product of 64 x 128 x 16 reads 6 KB of shared memory in 64
//   cycles of the tensor cores, three quarters of its bandwidth: bound by the tensor cores for large products, for
//   small ones by launch and latency, as the step before.
// Gains over the step before: wgmma is the only instruction that can keep sm_90's tensor cores busy; no warp that
//   multiplies computes an address, no fragment goes through registers, no barrier stops a block. Small tiles need
//   fewer slices, or none, to fill the device.
// Still slow because: a 64 x 256 product would read a fifth less; blocks of a cluster could share what they load; a
//   block writes its sums while its own stages are empty, and only the other block on the multiprocessor works.
// Limits: compute capability 9.0 alone; f16 and bf16. Operands whose rows are not multiples of 16 bytes, and K = 0, use
//   the variant mma. Row sums: of a transposed A, where K is not split.

#include <algorithm>

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

Variant mma();  // 7_mma.cu

namespace {

constexpr int kTileK = 64;
constexpr int kGroupWarps = 4;
constexpr int kGroupRows = 64;
constexpr int kMinKTiles = 2;    // of a slice
constexpr int kOnesColumns = 8;  // of the matrix of ones, as few as wgmma multiplies

/// What a block computes: kGroups warpgroups have 64 rows each.
template <int kGroups, int kTileColumns, int kStagesOfTile, int kBlocks>
struct TileConfig {
  static constexpr int kRows = kGroups * kGroupRows;
  static constexpr int kColumns = kTileColumns;
  static constexpr int kStages = kStagesOfTile;
  static constexpr int kBlocksOfMultiprocessor = kBlocks;   // a CPU has no such bounds
  static constexpr int kConsumers = kGroups * kGroupWarps;  // warps
  static constexpr int kThreads = 32 * (kConsumers + 1);
};
using Large = TileConfig<2, 128, 3, 2>;
using Small = TileConfig<1, 64, 4, 3>;

template <class T, class Tile>
struct Stage {
  T a[Tile::kRows * kTileK], b[Tile::kColumns * kTileK];
};

/// The stages, then the ones if row sums are wanted, and what it takes to align them to a swizzle pattern.
template <class T, class Tile>
constexpr std::size_t kStageBytes = Tile::kStages * sizeof(Stage<T, Tile>);
constexpr std::size_t kOnesBytes = kOnesColumns * simt::kSwizzledRowWords * 2;
template <class T, class Tile>
constexpr std::size_t shared_bytes(bool sums_rows) {
  return kStageBytes<T, Tile> + (sums_rows ? kOnesBytes : 0) + simt::kSwizzlePatternBytes - 1;
}

/// The producer's part: fills the stages as they become free.
template <class A, class B, class Tile, class T>
__device__ void fill(const simt::TensorMap& a, const simt::TensorMap& b, const KTilesOfBlock& k_tiles,
                     Stage<T, Tile>* stages, lib::BarrierPipe<Tile::kStages>& pipe) {
  const int first_row = static_cast<int>(blockIdx.x) * Tile::kRows;
  const int first_column = static_cast<int>(blockIdx.y) * Tile::kColumns;
  for (int k_tile = 0; k_tile < k_tiles.count; ++k_tile) {
    Stage<T, Tile>& stage = stages[k_tile % Tile::kStages];
    const int k = (k_tiles.first + k_tile) * kTileK;
    lib::Mbarrier& landed = pipe.begin_fill(k_tile, sizeof stage);
    A::start(a, first_row, k, Tile::kRows / A::kBox, stage.a, landed);
    B::start(b, first_column, k, Tile::kColumns / B::kBox, stage.b, landed);
  }
}

/// The sums of a thread: of its warpgroup's part of C, and of that part's rows of A.
template <class Tile, bool kSumsRows>
struct Sums {
  float of_c[lib::kSumsOf64<Tile::kColumns>] = {};
};
template <class Tile>
struct Sums<Tile, true> : Sums<Tile, false> {
  float of_rows[lib::kSumsOf64<kOnesColumns>] = {};
};

/// A consumer's part: the sums of its warpgroup.
template <class A, class B, class Tile, bool kSumsRows, class T>
__device__ void multiply(Sums<Tile, kSumsRows>& sums, int group, bool elected, const KTilesOfBlock& k_tiles,
                         const Stage<T, Tile>* stages, [[maybe_unused]] const T* ones,
                         lib::BarrierPipe<Tile::kStages>& pipe) {
  lib::warpgroup_expose(sums.of_c);
  if constexpr (kSumsRows) lib::warpgroup_expose(sums.of_rows);
  for (int k_tile = 0; k_tile < k_tiles.count; ++k_tile) {
    pipe.wait_filled(k_tile);
    const Stage<T, Tile>& stage = stages[k_tile % Tile::kStages];
    const T* rows = stage.a + group * A::kElementsOfBox;
    lib::warpgroup_fence();
    SIMT_UNROLL_ON_GPU
    for (int k = 0; k < kTileK; k += 16) {
      lib::warpgroup_mma_m64k16<T, A::kTransposed, B::kTransposed>(sums.of_c, A::operand(rows, k),
                                                                   B::operand(stage.b, k));
      if constexpr (kSumsRows)
        lib::warpgroup_mma_m64k16<T, A::kTransposed, false>(sums.of_rows, A::operand(rows, k),
                                                            WgmmaTile<true>::operand(ones, 0));
    }
    lib::warpgroup_commit();
    lib::warpgroup_wait<1>();  // the k-tile before is multiplied, while this one runs: its stage may be filled again
    if (elected && k_tile > 0) pipe.release(k_tile - 1);
  }
  lib::warpgroup_wait_for(sums.of_c);
  if constexpr (kSumsRows) lib::warpgroup_wait_for(sums.of_rows);
}

template <class T, class Tile, bool kAKMajor, bool kBKMajor, bool kSumsRows>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocksOfMultiprocessor)
    gemm_run_wgmma_kernel(SIMT_GRID_CONST(simt::TensorMap) a, SIMT_GRID_CONST(simt::TensorMap) b,
                          SIMT_GRID_CONST(Output<T>) c, [[maybe_unused]] float* row_sums, int k, int k_tiles_of_slice) {
  using A = WgmmaTile<kAKMajor>;
  using B = WgmmaTile<kBKMajor>;
  using Pipe = lib::BarrierPipe<Tile::kStages>;
  SIMT_DYNAMIC_SHARED(unsigned char, memory);
  SIMT_SHARED(Pipe, pipe);
  auto* stages = reinterpret_cast<Stage<T, Tile>*>(lib::align_shared<simt::kSwizzlePatternBytes>(memory));
  T* ones = reinterpret_cast<T*>(stages + Tile::kStages);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const KTilesOfBlock k_tiles(k, kTileK, k_tiles_of_slice);
  if (threadIdx.x == 0) pipe.init(Tile::kConsumers);
  if constexpr (kSumsRows) {
    for (unsigned i : simt::block_range(0, kOnesBytes / sizeof(T))) ones[i] = lib::from_f32<T>(1.0f);
    lib::warpgroup_publish();
  }
  __syncthreads();  // the pipe's barriers are initialised, and the ones are there

  if (warp == Tile::kConsumers) {
    if (lane == 0) fill<A, B, Tile>(a, b, k_tiles, stages, pipe);
    return;
  }
  const int group = lib::warpgroup_index();
  Sums<Tile, kSumsRows> sums;
  multiply<A, B, Tile>(sums, group, lane == 0, k_tiles, stages, ones, pipe);

  const Output<T> to = output_of_block(c);
  const int row = static_cast<int>(blockIdx.x) * Tile::kRows + group * kGroupRows + warp % kGroupWarps * 16 + lane / 4;
  const int column = static_cast<int>(blockIdx.y) * Tile::kColumns + four_column(lane);
  const auto upper = to.row(row);
  const auto lower = to.row(row + 8);
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < lib::kSumsOf64<Tile::kColumns>; i += 8) {  // of 16 columns: simt::warpgroup_position_in_d
    const float* const s = sums.of_c + i;
    float four[kFour];
    join_pairs(lane, {s[0], s[1]}, {s[4], s[5]}, four);
    upper.put(column + 2 * i, four);
    join_pairs(lane, {s[2], s[3]}, {s[6], s[7]}, four);
    lower.put(column + 2 * i, four);
  }
  if constexpr (kSumsRows) {
    if (blockIdx.y > 0 || lane % 4 > 0) return;  // all 8 columns are alike
    for (int half = 0; half < 2; ++half) {
      const int at = row + 8 * half;
      if (at < c.rows) row_sums[at] = (c.accumulate ? row_sums[at] : 0.0f) + sums.of_rows[2 * half];
    }
  }
}

/// Operands that TMA cannot copy, and K = 0, use the variant mma.
template <class T>
bool needs_mma(const Problem<T>& problem) {
  return !problem.a.aligned || !problem.b.aligned || problem.k == 0;
}

/// Whether large tiles fill the device.
template <class T>
bool is_large(const Problem<T>& problem) {
  const dim3 tiles = problem.tiles(Large::kRows, Large::kColumns);
  return tiles.x * tiles.y >= kBlocksWanted;
}

/// Of a k-tile for each stage all copies are under way at once, whether K is split or not.
template <class T>
int min_k_tiles(const Problem<T>& problem) {
  return problem.k <= Small::kStages * kTileK ? Small::kStages : kMinKTiles;
}

bool sums_rows(const Args& args) {
  bool can = false;
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    const Problem<T> problem(args);
    can = args.transpose_a && !args.transpose_b && !needs_mma(problem) && !is_large(problem) &&
          slices_of(problem, kTileK, min_k_tiles(problem), problem.tiles(Small::kRows, Small::kColumns)) == 1;
  });
  return can;
}

template <class T, class Tile, bool kAKMajor, bool kBKMajor, bool kSumsRows = false>
void launch(Stream& stream, const Args& args, const Problem<T>& problem) {
  simt::Config config{.grid = problem.tiles(Tile::kRows, Tile::kColumns),
                      .block = dim3(Tile::kThreads),
                      .shared_bytes = shared_bytes<T, Tile>(kSumsRows)};
  with_slices(stream, args, problem, kTileK, min_k_tiles(problem), config.grid, [&](const Output<T>& to, int k_tiles) {
    simt::launch<gemm_run_wgmma_kernel<T, Tile, kAKMajor, kBKMajor, kSumsRows>>(
        stream, config, WgmmaTile<kAKMajor>::map(problem.a), WgmmaTile<kBKMajor>::map(problem.b), to, args.row_sums,
        problem.k, k_tiles);
  });
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.m == 0 || args.n == 0) return;
  if (args.row_sums && !sums_rows(args)) reject_row_sums("wgmma", args);
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    const Problem<T> problem(args);
    if (needs_mma(problem)) return mma().run(stream, args);
    if (args.row_sums) return launch<T, Small, false, false, true>(stream, args, problem);
    with_layouts(args, [&](auto a_k_major, auto b_k_major) {
      if (is_large(problem))
        launch<T, Large, a_k_major.value, b_k_major.value>(stream, args, problem);
      else
        launch<T, Small, a_k_major.value, b_k_major.value>(stream, args, problem);
    });
  });
}

}  // namespace

Variant wgmma() {
  return {.name = "wgmma",
          .run = run,
          .supports = lib::supports_hopper_half,
          .computes = lib::is_half,
          .workspace_bytes = std::max(mma().workspace_bytes, workspace_bytes(Small::kRows, Small::kColumns)),
          .sums_rows = sums_rows};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
