// SPDX-License-Identifier: Apache-2.0
// Idea: every 64 elements give one partial sum, whatever the grid or the machine; then one block adds up the partial
//   sums in a fixed order. Nothing depends on the order of arrival, so the same input gives the same bits, also if
//   other ranks computed some of the partial sums.
// Mapping: each thread takes 64 neighbouring elements, in packs of four on a GPU, and keeps several sums, so that the
//   additions do not wait for each other. A non-finite element makes its partial sum NaN; only in such a block is its
//   index searched for.
// Traffic and bound: reads each element once and writes an eighth of a byte for each; bound by memory, for few elements
//   by the two launches.
// Still slow because: a warp's loads are 256 bytes apart, so each touches as many sectors as it has lanes; the second
//   launch costs as much as the first for a small model, and its one block reads all partial sums.
// Limits: float sums: the more elements, the more rounding (see the contract).

#include <limits>

#include "kernels/lib/element.h"
#include "kernels/lib/pack.h"
#include "kernels/lib/rows.h"
#include "kernels/ops/gradient_statistics/gradient_statistics.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gradient_statistics {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kSums = lib::kPack < 8 ? lib::kPack : 8;
constexpr int kTotalThreads = 256;
constexpr int kTotalSums = 4;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr long long kNone = std::numeric_limits<long long>::max();
static_assert(kBlock % lib::kPack == 0 && lib::kPack % kSums == 0, "a block is whole packs, a pack whole rows of sums");

/// Of one block: the square of element i is added to sum i % kSums.
struct BlockSums {
  float least;  // what is smaller is tiny
  float sums[kSums] = {};
  int tiny = 0;

  __device__ void take(int i, float value) {
    tiny += fabsf(value) < least ? 1 : 0;
    sums[i % kSums] += value * value;
  }
  /// The same, in two loops, since compilers vectorize each of them.
  template <class Pack>
  __device__ void take_pack(const Pack& pack) {
    for (int i = 0; i < lib::kPack; ++i) tiny += fabsf(lib::to_f32(pack[i])) < least ? 1 : 0;
    for (int row = 0; row < lib::kPack; row += kSums)
      for (int j = 0; j < kSums; ++j) {
        const float value = lib::to_f32(pack[row + j]);
        sums[j] += value * value;
      }
  }
  /// Writes the results of the block, whose `count` elements begin at `x`. They are searched only if the sum is not
  /// finite: an element is not, or the sum has overflowed.
  template <class T>
  __device__ void write(const T* x, int count, float& block, float& note) const {
    float sum = 0;
    for (const float each : sums) sum += each;
    const int first = isfinite(sum) ? count : first_non_finite(x, count);
    block = first < count ? kNaN : sum;
    note = static_cast<float>(first < count ? -1 - first : tiny);
  }
  template <class T>
  __device__ static int first_non_finite(const T* x, int count) {
    for (int i = 0; i < count; ++i)
      if (!isfinite(lib::to_f32(x[i]))) return i;
    return count;
  }
};

template <bool kWide, class T>
__global__ void gradient_statistics_blocks_kernel(const T* __restrict__ x, std::size_t elements, float least,
                                                  float* __restrict__ blocks, float* __restrict__ notes) {
  for (std::size_t block : simt::grid_range(elements / kBlock)) {
    BlockSums sums{.least = least};
    for (std::size_t at = block * kBlock; at < (block + 1) * kBlock; at += lib::kPack)
      sums.take_pack(lib::load_pack<kWide>(x + at));
    sums.write(x + block * kBlock, kBlock, blocks[block], notes[block]);
  }
  const std::size_t rest = elements / kBlock * kBlock;
  if (blockIdx.x * blockDim.x + threadIdx.x > 0 || rest == elements) return;
  BlockSums sums{.least = least};
  const int count = static_cast<int>(elements - rest);
  for (int i = 0; i < count; ++i) sums.take(i, lib::to_f32(x[rest + i]));
  sums.write(x + rest, count, blocks[rest / kBlock], notes[rest / kBlock]);
}

/// What some notes say together. Shared memory takes no initial values.
struct Notes {
  long long first;
  long long tiny;

  __device__ void take(std::size_t block, float note) {
    if (note >= 0)
      tiny += static_cast<long long>(note);
    else
      take_first(static_cast<long long>(block * kBlock) - 1 - static_cast<long long>(note));
  }
  __device__ void take(const Notes& other) {
    tiny += other.tiny;
    take_first(other.first);
  }
  __device__ void take_first(long long index) { first = index < first ? index : first; }
};

/// One block: adds up the partial sums, which are NaN only where an element is not finite, and the notes.
__global__ void gradient_statistics_total_kernel(TotalArgs args) {
  using Table = Notes[kTotalThreads];
  SIMT_SHARED(Table, table);
  Notes noted{kNone, 0};
  for (unsigned block : simt::block_range(0, static_cast<unsigned>(args.count))) noted.take(block, args.notes[block]);
  table[threadIdx.x] = noted;  // read after block_sum's barrier
  const float* const blocks = args.blocks;
  const std::size_t count = args.count;
  float sums[kTotalSums] = {};
  const auto rows = static_cast<unsigned>(count / kTotalSums);
  for (unsigned row : simt::block_range(0, rows))
    for (unsigned j = 0; j < kTotalSums; ++j) sums[j] += blocks[std::size_t{row} * kTotalSums + j];
  if (threadIdx.x == 0)
    for (std::size_t i = std::size_t{rows} * kTotalSums; i < count; ++i) sums[0] += blocks[i];
  const float mine[1] = {(sums[0] + sums[1]) + (sums[2] + sums[3])};
  lib::block_sum<kTotalThreads>(mine, [&](int, float total) {
    Notes notes{kNone, 0};
    for (int i = 0; i < kTotalThreads; ++i) notes.take(table[i]);
    *args.sum = total;
    *args.non_finite = isnan(total) ? 1 : 0;
    *args.first_non_finite = notes.first == kNone ? -1 : notes.first;
    *args.tiny_count = notes.tiny;
  });
}

void run_blocks(Stream& stream, const BlocksArgs& args) {
  check_args(args);
  if (args.elements == 0) return;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const T* const x = static_cast<const T*>(args.x);
    const simt::Config config = lib::grid_for_packs(stream, args.elements);
    lib::with_bool(lib::is_pack_aligned(x), [&](auto wide) {
      simt::launch_flat<gradient_statistics_blocks_kernel<wide.value, T>>(stream, config, x, args.elements, args.tiny,
                                                                          args.blocks, args.notes);
    });
  });
}

void run_total(Stream& stream, const TotalArgs& args) {
  check_args(args);
  const simt::Config config{.grid = dim3(1), .block = dim3(kTotalThreads)};
  simt::launch<gradient_statistics_total_kernel>(stream, config, args);
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  const std::size_t count = block_count(args.elements);
  auto* const blocks = static_cast<float*>(args.workspace);
  float* const notes = blocks ? blocks + count : nullptr;
  run_blocks(stream, {.dtype = args.dtype,
                      .x = args.x,
                      .elements = args.elements,
                      .tiny = args.tiny,
                      .blocks = blocks,
                      .notes = notes});
  run_total(stream, {.blocks = blocks,
                     .notes = notes,
                     .count = count,
                     .sum = args.sum,
                     .non_finite = args.non_finite,
                     .first_non_finite = args.first_non_finite,
                     .tiny_count = args.tiny_count});
}

}  // namespace

Variant two_stage() { return {"two_stage", run, run_blocks, run_total, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gradient_statistics
