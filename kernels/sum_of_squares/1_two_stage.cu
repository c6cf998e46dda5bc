// SPDX-License-Identifier: Apache-2.0
// Idea: every 64 elements give one partial sum, whatever the grid or the machine; one block then adds up the partial sums
//   in a fixed order. Nothing depends on who comes first, so the same input gives the same bits, and so do parts of it that
//   were summed elsewhere.
// Mapping: a thread takes 64 neighbouring elements, in packs of four on a GPU, and keeps several sums, so that the additions
//   do not wait for each other. A bad number makes its partial sum NaN, so one array carries both answers.
// Traffic and bound: reads each element once; bound by memory, for few elements by the two launches.
// Still slow because: a warp's loads lie 256 bytes apart, so each touches as many lines as it has lanes; the second launch
//   costs as much as the first for a small model, and its one block reads all partial sums.
// Limits: float sums: the more elements, the more rounding (see the contract).

#include <limits>

#include "kernels/lib/block_sum.h"
#include "kernels/lib/element.h"
#include "kernels/lib/pack.h"
#include "kernels/simt/simt.h"
#include "kernels/sum_of_squares/sum_of_squares.h"

namespace gradring::kernels::sum_of_squares {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kSums = lib::kPack < 8 ? lib::kPack : 8;
constexpr int kTotalThreads = 256;
constexpr int kTotalSums = 4;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
static_assert(kBlock % lib::kPack == 0 && lib::kPack % kSums == 0, "a block is whole packs, a pack whole rows of sums");

/// Of one block: element i goes to sum i % kSums.
struct BlockSums {
  float sums[kSums] = {};
  int flags[kSums] = {};

  __device__ void take(int j, float value) {
    sums[j] += value * value;
    flags[j] |= isfinite(value) ? 0 : 1;
  }
  __device__ float total() const {
    float sum = 0;
    int flag = 0;
    for (int j = 0; j < kSums; ++j) {
      sum += sums[j];
      flag |= flags[j];
    }
    if (flag) return kNaN;
    return sum;
  }
};

template <bool kWide, class T>
__global__ void sum_of_squares_blocks_kernel(const T* __restrict__ x, std::size_t elements,
                                             float* __restrict__ blocks) {
  for (std::size_t block : simt::grid_range(elements / kBlock)) {
    BlockSums sums;
    for (std::size_t at = block * kBlock; at < (block + 1) * kBlock; at += lib::kPack) {
      const lib::Pack<T> pack = lib::load_pack<kWide>(x + at);
      for (int row = 0; row < lib::kPack; row += kSums)
        for (int j = 0; j < kSums; ++j) sums.take(j, lib::to_f32(pack[row + j]));
    }
    blocks[block] = sums.total();
  }
  const std::size_t rest = elements / kBlock * kBlock;
  if (blockIdx.x * blockDim.x + threadIdx.x > 0 || rest == elements) return;
  BlockSums sums;
  for (std::size_t i = rest; i < elements; ++i) sums.take(static_cast<int>((i - rest) % kSums), lib::to_f32(x[i]));
  blocks[rest / kBlock] = sums.total();
}

/// One block: adds up the partial sums, of which none is NaN unless it was made so.
__global__ void sum_of_squares_total_kernel(const float* __restrict__ blocks, std::size_t count, float* sum,
                                            std::int32_t* non_finite) {
  float sums[kTotalSums] = {};
  const auto rows = static_cast<unsigned>(count / kTotalSums);
  for (unsigned row : simt::block_range(0, rows))
    for (unsigned j = 0; j < kTotalSums; ++j) sums[j] += blocks[std::size_t{row} * kTotalSums + j];
  if (threadIdx.x == 0)
    for (std::size_t i = std::size_t{rows} * kTotalSums; i < count; ++i) sums[0] += blocks[i];
  const float mine[1] = {(sums[0] + sums[1]) + (sums[2] + sums[3])};
  lib::block_sum<kTotalThreads>(mine, [=](int, float total) {
    *sum = total;
    *non_finite = isnan(total) ? 1 : 0;
  });
}

void run_blocks(Stream& stream, const BlocksArgs& args) {
  check_args(args);
  if (args.elements == 0) return;
  lib::with_element(args.dtype, [&](auto element) {
    using T = typename decltype(element)::type;
    const T* const x = static_cast<const T*>(args.x);
    const simt::Config config = lib::grid_for_packs(stream, args.elements);
    lib::is_pack_aligned(x)
        ? simt::launch_flat<sum_of_squares_blocks_kernel<true, T>>(stream, config, x, args.elements, args.blocks)
        : simt::launch_flat<sum_of_squares_blocks_kernel<false, T>>(stream, config, x, args.elements, args.blocks);
  });
}

void run_total(Stream& stream, const TotalArgs& args) {
  check_args(args);
  const simt::Config config{.grid = dim3(1), .block = dim3(kTotalThreads)};
  simt::launch<sum_of_squares_total_kernel>(stream, config, args.blocks, args.count, args.sum, args.non_finite);
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  auto* const blocks = static_cast<float*>(args.workspace);
  run_blocks(stream, {.dtype = args.dtype, .x = args.x, .elements = args.elements, .blocks = blocks});
  run_total(stream,
            {.blocks = blocks, .count = block_count(args.elements), .sum = args.sum, .non_finite = args.non_finite});
}

}  // namespace

Variant two_stage() { return {"two_stage", run, run_blocks, run_total, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::sum_of_squares
