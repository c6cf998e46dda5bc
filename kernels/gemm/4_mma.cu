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

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/mma_tile.h"
#include "kernels/gemm/shares.h"
#include "kernels/gemm/tiles.h"
#include "kernels/lib/async_copy.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {
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
    __syncthreads();  // everybody's part of this round has landed, and nobody still reads the tile that is filled next
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
  lib::with_half(args.dtype, [&](auto element) {
    using T = typename decltype(element)::type;
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
