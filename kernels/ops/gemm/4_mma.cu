// SPDX-License-Identifier: Apache-2.0
// Idea: tensor cores without WMMA's secrets. cp.async fills a ring of four tiles in shared memory, so that loads for
//   later rounds fly while this one multiplies; pieces are stored at places that are swizzled instead of padded;
//   ldmatrix brings fragments into the registers where mma.sync wants them; sums go to C from registers. Where C has
//   few tiles, several blocks share the inner index of one, and a second kernel adds up what they found.
// Mapping: 4 warps per 128 x 64 tile of C, 32 inner indices a round; a warp per 64 x 32, as 4 x 4 products of 16 x 8 x
//   16. blockIdx.z: the share of the inner index.
// Traffic and bound: 2 k elements for 128 x 64 sums. 6 ldmatrix for 16 mma.sync: bound by the tensor cores as far as
//   mma.sync reaches, for small products by launch and latency. Shares cost 8 bytes a sum and share.
// Gains over the step before: one barrier a round instead of two and memory's latency hidden behind three rounds; half
//   the loads from shared memory a product; no detour for sums; all processors work, also for small C.
// Still slow because: mma.sync reaches about two thirds of what wgmma does on sm_90, and every warp computes addresses.
// Limits: f16 and bf16; m, k <= 2^30, 65,535 tiles of columns. Rows whose length is no multiple of 8 are loaded element
//   by element, without cp.async.

#include <cstdint>

#include "kernels/lib/async_copy.h"
#include "kernels/lib/tensor_core.h"
#include "kernels/ops/gemm/gemm.h"
#include "kernels/ops/gemm/tiles.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {

/// A tile of a factor in shared memory, for ldmatrix: rows in memory's order without padding, but the pieces of a row
/// lie in an order of its own (XOR swizzle), so that 8 neighbouring rows of a piece lie in all 32 banks.
template <int kOuterExtent, int kInnerExtent, bool kAlong>
struct MmaTile : TileShape<kOuterExtent, kInnerExtent, kAlong> {
  using Shape = TileShape<kOuterExtent, kInnerExtent, kAlong>;
  static constexpr int kElements = Shape::kRows * Shape::kColumns;
  static constexpr bool kLiesAlong = kAlong;

  /// Where the piece that begins at this place lies.
  __device__ static int at(int row, int column) {
    // Rows of 64 bytes: two share 128 bytes, what all banks hold, and have 4 places each.
    const int swizzle = Shape::kColumns >= 64 ? row % 8 : row / 2 % 4;
    return row * Shape::kColumns + (column / kPiece ^ swizzle) * kPiece;
  }

  /// Starts to copy a tile: by cp.async, except pieces at an edge and in rows that are not aligned. `kThreads` in the
  /// block.
  template <int kThreads, class T>
  __device__ static void start(const Matrix<T>& from, int first_outer, int first_inner, T* tile) {
    const int first_row = kAlong ? first_outer : first_inner;
    const int first_column = kAlong ? first_inner : first_outer;
    constexpr int kPiecesOfRow = Shape::kColumns / kPiece;
    static_assert(Shape::kPieces % kThreads == 0);
    SIMT_UNROLL_ON_GPU
    for (int round = 0; round < Shape::kPieces / kThreads; ++round) {
      const int i = static_cast<int>(threadIdx.x) + round * kThreads;
      const int row = i / kPiecesOfRow;
      const int column = i % kPiecesOfRow * kPiece;
      T* to = tile + at(row, column);
      if (from.wide && from.holds(first_row + row, first_column + column))
        async_copy16(to, from.at(first_row + row, first_column + column));
      else
        simt::store_as<Piece<T>>(to, from.piece(first_row + row, first_column + column));
    }
  }

  /// Loads 16 outer x 16 inner indices: a tile of a if `kOfA`, else two of b. See kernels/lib/tensor_core.h.
  template <bool kOfA, class T>
  __device__ static void load(const T* tile, int outer, int inner, int lane, std::uint32_t (&registers)[4]) {
    const simt::Place place = kOfA == kAlong ? simt::matrices_down(lane) : simt::matrices_across(lane);
    if constexpr (kAlong)
      lib::ldmatrix_x4(registers, tile + at(outer + place.row, inner + place.column));
    else
      lib::ldmatrix_x4_trans(registers, tile + at(inner + place.row, outer + place.column));
  }
};

/// The sums of a warp, in registers.
template <int kRows, int kColumns>
class MmaSums {
 public:
  /// Adds the product over 16 inner indices; `row` and `column` are the warp's first in the block's tiles.
  template <class A, class B, class T>
  __device__ void add(const T* a_tile, int row, const T* b_tile, int column, int inner, int lane) {
    std::uint32_t a[kRows / 16][4], b[kColumns / 16][4];
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kRows / 16; ++i) A::template load<true>(a_tile, row + 16 * i, inner, lane, a[i]);
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < kColumns / 16; ++j) B::template load<false>(b_tile, column + 16 * j, inner, lane, b[j]);
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kRows / 16; ++i) {
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < kColumns / 8; ++j)
        lib::mma_m16n8k16<T>(sums_[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }

  /// Calls visit(row, column, sum) for every sum that this lane holds.
  template <class Visit>
  __device__ void for_each(int lane, Visit visit) const {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kRows / 16; ++i) {
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < kColumns / 8; ++j) {
        SIMT_UNROLL_ON_GPU
        for (int at = 0; at < 4; ++at) {
          const simt::Place place = simt::mma_place_in_c(lane, at);
          visit(16 * i + place.row, 8 * j + place.column, sums_[i][j][at]);
        }
      }
    }
  }

 private:
  float sums_[kRows / 16][kColumns / 8][4] = {};
};

namespace {

/// A thread per element of C walks through the shares, without atomics, so that every run gives the same bits.
template <class T>
__global__ void gemm_add_shares_kernel(const float* __restrict__ shares, int count, SIMT_GRID_CONST(Output<T>) c) {
  const std::int64_t elements = std::int64_t{c.rows} * c.columns;
  for (std::size_t i : simt::grid_range(static_cast<std::size_t>(elements))) {
    const auto at = static_cast<std::int64_t>(i);
    float sum = 0;
    for (int share = 0; share < count; ++share) sum += shares[share * elements + at];
    c.put(at, sum);
  }
}

}  // namespace

template <class T>
void add_shares(Stream& stream, const float* shares, int count, const Output<T>& c) {
  const std::int64_t elements = std::int64_t{c.rows} * c.columns;
  simt::launch_flat<gemm_add_shares_kernel<T>>(stream, simt::grid_for(stream, static_cast<std::size_t>(elements)),
                                               shares, count, c);
}

template void add_shares(Stream&, const float*, int, const Output<__half>&);
template void add_shares(Stream&, const float*, int, const Output<__nv_bfloat16>&);

namespace {

constexpr int kTileRows = 128;
constexpr int kTileColumns = 64;
constexpr int kInner = 32;
constexpr int kStages = 4;
constexpr int kThreads = 128;
constexpr int kWarpRows = 64;
constexpr int kWarpColumns = 32;

constexpr int kLeastRoundsOfAShare = 4;  // what fills the ring once

template <class T, bool kAAlong, bool kBAlong>
__global__ void __launch_bounds__(kThreads)
    gemm_run_mma_kernel(SIMT_GRID_CONST(Problem<T>) problem, SIMT_GRID_CONST(Output<T>) c, int rounds_of_share) {
  using A = MmaTile<kTileRows, kInner, kAAlong>;
  using B = MmaTile<kTileColumns, kInner, kBAlong>;
  using ARing = T[kStages][A::kElements];
  using BRing = T[kStages][B::kElements];
  SIMT_SHARED(ARing, a_ring);
  SIMT_SHARED(BRing, b_ring);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = static_cast<int>(blockIdx.x) * kTileRows;
  const int first_column = static_cast<int>(blockIdx.y) * kTileColumns;
  const RoundsOfBlock rounds(problem.inner, kInner, rounds_of_share);
  const int row = warp / 2 * kWarpRows;
  const int column = warp % 2 * kWarpColumns;

  const auto start = [&](int round) {
    if (round < rounds.count) {
      const int inner = (rounds.first + round) * kInner;
      A::template start<kThreads>(problem.a, first_row, inner, a_ring[round % kStages]);
      B::template start<kThreads>(problem.b, first_column, inner, b_ring[round % kStages]);
    }
    async_commit();  // an empty group at the end keeps the count of groups even
  };
  MmaSums<kWarpRows, kWarpColumns> sums;
  for (int round = 0; round < kStages - 1; ++round) start(round);
  for (int round = 0; round < rounds.count; ++round) {
    async_wait<kStages - 2>();
    __syncthreads();  // all copies of this round have landed, and no thread still reads the tile that is filled next
    start(round + kStages - 1);
    SIMT_UNROLL_ON_GPU
    for (int inner = 0; inner < kInner; inner += 16)
      sums.template add<A, B>(a_ring[round % kStages], row, b_ring[round % kStages], column, inner, lane);
  }
  const Output<T> to = output_of_block(c);
  sums.for_each(lane, [&](int i, int j, float sum) { to.put(first_row + row + i, first_column + column + j, sum); });
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  if (args.m == 0 || args.n == 0) return;
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    const Problem<T> problem(args);
    simt::Config config{.grid = problem.tiles(kTileRows, kTileColumns), .block = dim3(kThreads)};
    const Shares shares(problem.inner, kInner, kLeastRoundsOfAShare, std::int64_t{config.grid.x} * config.grid.y);
    config.grid.z = static_cast<unsigned>(shares.count);
    with_shares(stream, args, problem.c, shares, [&](const Output<T>& to) {
      with_storage(args, [&](auto a_along, auto b_along) {
        simt::launch<gemm_run_mma_kernel<T, a_along.value, b_along.value>>(stream, config, problem, to, shares.rounds);
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
          .workspace_bytes = share_bytes(kTileRows, kTileColumns)};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
