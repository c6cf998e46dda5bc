// SPDX-License-Identifier: Apache-2.0
// Idea: whoever adds up partial sums has the gradients in registers: their squares cost no further read. And the last
//   block that finishes adds up what all blocks found, then makes the step's state ready. So one launch stands between
//   backward and the optimizer.
// Mapping: 8 threads have a block of 64 elements, each of them four of both halves; so a warp's accesses are whole rows of
//   128 bytes. A tile is what 256 threads have: 2048 elements; where there are many slices to add up, fewer (down to
//   128): then several groups of threads share the slices of an element, and their sums are added up in shared memory, in
//   a fixed order. The arrays of partial sums, and the gradients between them that are complete, are a list of segments,
//   an argument of the kernel; a table says in which segment a tile begins.
// Traffic and bound: reads each slice once, and each complete gradient; writes the sums, and an eighth of a byte for
//   each element. Bound by memory.
// Gains over the step before: one launch instead of one for each array, one for each run, and two; sums are not read
//   again.
// Still slow because: the optimizer reads the gradients again, as it needs the norm first. Of 10 us on an H100 most are
//   latency: of slices, of the last block's sum, of what one thread computes in double.
// Limits: f32, for GPUs. More than 31 segments take several launches. `run` takes two: its workspace is not zeroed.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/lib/element.h"
#include "kernels/lib/last_block.h"
#include "kernels/lib/load_ahead.h"
#include "kernels/ops/gradient_statistics/segments.h"
#include "kernels/ops/gradient_statistics/total.cuh"
#include "kernels/ops/step_state/steps.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gradient_statistics {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kBlock = gradient_statistics::kBlock;
constexpr int kSlicesAtOnce = 6, kHalfAtOnce = 8;  // on their way to a thread, of a block or of half a block
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct alignas(kFour * sizeof(float)) Four {
  float values[kFour];

  __device__ void add(const Four& other) {
    SIMT_UNROLL
    for (int j = 0; j < kFour; ++j) values[j] += other.values[j];
  }
};

/// What the last block does.
struct Ending {
  Total total;
  step_state::PrepareArgs prepare;
  unsigned* arrivals;  // null: nothing
};

__device__ int segment_of_tile(const Work& work, unsigned tile) {
  int at = work.segment_of[tile >> work.tiles_log2];
  while (work.segments[at + 1].first_tile <= tile) ++at;
  return at;
}

/// What a thread has of a block: four neighbouring elements of each half.
struct Elements {
  Four halves[2];

  /// `from` is of the first half.
  static __device__ Elements load(const float* from) {
    return {simt::load_as<Four>(from), simt::load_as<Four>(from + kHalf)};
  }
  __device__ void store(float* to) const {
    simt::store_as<Four>(to, halves[0]);
    simt::store_as<Four>(to + kHalf, halves[1]);
  }
  __device__ void add(const Elements& other) { halves[0].add(other.halves[0]), halves[1].add(other.halves[1]); }
};

/// Where four neighbouring elements come from and go to: all of one segment, since those begin at halves of blocks.
struct Source {
  const float* slices;
  float* x;
  std::int64_t stride;
  int count;   // of slices
  int summed;  // of the four, from slices; the first of them
  int exist;   // of the four; what is not summed is complete
  bool wide, is_written;

  /// Element i of a segment, which may be in a later one.
  __device__ Source(const Segment& first, int i) {
    const Segment* of = &first;
    for (; i >= of->elements && of->continues; ++of) i -= of->elements;
    slices = of->slices + i, x = of->x + i;
    stride = of->stride;
    summed = of->summed - i, exist = of->elements - i;
    count = summed > 0 ? of->count : 0;
    wide = i + kFour <= of->wide, is_written = of->x != of->slices;
  }
  __device__ bool is_summed(int j) const { return j < summed; }

  /// Slices part, part + parts and so on, and to part 0 what is complete.
  __device__ Four sum(int part, int parts) const {
    Four four{};
    if (wide) {
      lib::load_ahead<kHalfAtOnce>(
          part, count, parts, [&](int slice) { return simt::load_as<Four>(slices + slice * stride); },
          [&](int, const Four& more) { four.add(more); });
      return four;
    }
    lib::load_ahead<kHalfAtOnce>(
        part, count, parts,
        [&](int slice) {
          Four more;
          SIMT_UNROLL
          for (int j = 0; j < kFour; ++j) more.values[j] = slices[slice * stride + (is_summed(j) ? j : 0)];
          return more;
        },
        [&](int, const Four& more) {
          SIMT_UNROLL
          for (int j = 0; j < kFour; ++j) four.values[j] += is_summed(j) ? more.values[j] : 0.0f;
        });
    SIMT_UNROLL
    for (int j = 0; j < kFour && part == 0; ++j)
      if (!is_summed(j) && j < exist) four.values[j] = x[j];
    return four;
  }
  __device__ void store(const Four& four) const {
    if (!is_written) return;
    if (wide) return simt::store_as<Four>(x, four);
    SIMT_UNROLL
    for (int j = 0; j < kFour; ++j)
      if (is_summed(j)) x[j] = four.values[j];
  }
  __device__ int missing() const { return exist < 0 ? kFour : exist < kFour ? kFour - exist : 0; }
};

/// Writes what a block of elements adds up to. A whole warp calls it; 8 threads have the block, each of them `missing`
/// elements that do not exist, and are 0.
__device__ void write_block(const Work& work, std::int64_t block, bool writes, int missing, const Elements& mine) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned byte = lane / kBlockThreads * 8;  // of a word that the four blocks of a warp count in
  float sum = 0;
  int tiny = work.tiny > 0 ? -missing : 0;
  SIMT_UNROLL
  for (int h = 0; h < 2; ++h) {
    SIMT_UNROLL
    for (int j = 0; j < kFour; ++j) {
      sum = fmaf(mine.halves[h].values[j], mine.halves[h].values[j], sum);
      tiny += fabsf(mine.halves[h].values[j]) < work.tiny ? 1 : 0;
    }
  }
  SIMT_UNROLL
  for (unsigned other = kBlockThreads / 2; other > 0; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
  tiny = __reduce_add_sync(~0u, tiny << byte) >> byte & 0xff;
  // Searched only if the sum is not finite: an element is not, or the sum has overflowed.
  int first = kBlock;
  if (__any_sync(~0u, !isfinite(sum))) {
    for (int h = 1; h >= 0; --h)
      for (int j = kFour - 1; j >= 0; --j)
        if (!isfinite(mine.halves[h].values[j])) first = h * kHalf + static_cast<int>(lane % kBlockThreads) * kFour + j;
    for (int other = kBlockThreads / 2; other > 0; other /= 2) {
      const int of_other = __shfl_xor_sync(~0u, first, other);
      first = of_other < first ? of_other : first;
    }
  }
  if (!writes || lane % kBlockThreads > 0) return;
  const bool finite = first == kBlock;
  work.blocks[block] = finite ? sum : kNaN;
  work.notes[block] = static_cast<float>(finite ? tiny : -1 - first);
}

/// A block of threads has a tile: some blocks of elements.
template <bool kStatistics>
__device__ void take_tile(const Work& work) {
  SIMT_SHARED(Four[2][kThreads], sums);
  const unsigned thread = threadIdx.x;
  const Segment& tile = work.segments[segment_of_tile(work, blockIdx.x)];
  const int blocks_log2 = kGroupsLog2 - tile.parts_log2;
  const unsigned group = thread / kBlockThreads;
  const int parts = 1 << tile.parts_log2;
  const int part = static_cast<int>(group >> blocks_log2);
  const int block = static_cast<int>(((blockIdx.x - tile.first_tile) << blocks_log2) + group) - (part << blocks_log2);
  const bool exists = block < tile.blocks;
  const int i = tile.first + block * kBlock + static_cast<int>(thread % kBlockThreads * kFour);
  Elements mine{};
  int missing = 0;
  const bool whole = exists && i + kHalf + kFour <= tile.wide;
  if (whole) {
    const float* const from = tile.slices + i;
    lib::load_ahead<kSlicesAtOnce>(
        part, tile.count, parts, [&](int slice) { return Elements::load(from + slice * tile.stride); },
        [&](int, const Elements& more) { mine.add(more); });
  } else if (exists) {
    for (int h = 0; h < 2; ++h) {  // by way of shared memory, as registers have no index
      const Source source(tile, i + h * kHalf);
      sums[h][thread] = source.sum(part, parts);
      missing += source.missing();
    }
    mine = {sums[0][thread], sums[1][thread]};
  }
  if (tile.parts_log2 > 0) {
    for (int h = 0; h < 2; ++h) sums[h][thread] = mine.halves[h];
    __syncthreads();  // the sums of all parts are there
    const unsigned stride = kBlockThreads << blocks_log2;
    if (part == 0)
      for (unsigned other = thread + stride; other < kThreads; other += stride)
        mine.add({sums[0][other], sums[1][other]});
  }
  if (part == 0 && whole) {
    if (tile.x != tile.slices) mine.store(tile.x + i);
  } else if (part == 0 && exists) {
    for (int h = 0; h < 2; ++h) sums[h][thread] = mine.halves[h];
    for (int h = 0; h < 2; ++h) Source(tile, i + h * kHalf).store(sums[h][thread]);
  }
  if constexpr (kStatistics)
    if (thread / 32 * 32 < kBlockThreads << blocks_log2)
      write_block(work, tile.first_block + block, exists && part == 0, missing, mine);
}

__global__ void __launch_bounds__(kThreads) gradient_statistics_add_up_kernel(SIMT_GRID_CONST(Work) work) {
  take_tile<false>(work);
}

__global__ void __launch_bounds__(kThreads)
    gradient_statistics_finish_kernel(SIMT_GRID_CONST(Work) work, SIMT_GRID_CONST(Ending) ending) {
  take_tile<true>(work);
  if (!ending.arrivals || !lib::is_last_block(ending.arrivals)) return;
  // Of the step's state, what does not depend on the sum is there before it: all in front is one thread's latency.
  const step_state::PrepareArgs& prepare = ending.prepare;
  if (threadIdx.x == kThreads - 1 && prepare.state) step_state::set_rates(prepare);
  const double inverse_scale = threadIdx.x == 0 && prepare.state ? step_state::inverse_loss_scale(*prepare.state) : 0;
  const float sum = write_total<kThreads>(ending.total);
  if (threadIdx.x == 0 && prepare.state) step_state::set_scale(prepare, inverse_scale, sum, isnan(sum));
}

void finish(Stream& stream, const FinishArgs& args) {
  check_args(args);
  const Work work{.tiny = args.tiny, .blocks = args.blocks, .notes = args.notes};
  segments_of(args).launch(work, [&](const Work& some, unsigned tiles, bool last) {
    const simt::Config config{.grid = dim3(std::max(tiles, 1u)), .block = dim3(kThreads)};
    simt::launch<gradient_statistics_finish_kernel>(
        stream, config, some, Ending{total_of(args), args.prepare, last ? args.arrivals : nullptr});
  });
}

void add_up(Stream& stream, std::span<const PartialSum> sums) {
  Segments segments;
  std::int64_t begin = 0;
  for (const PartialSum& sum : sums) {
    segments.add_sum(sum, begin, sum.elements);
    begin = rounded_up(begin + sum.elements, kBlock);
  }
  segments.launch(Work{}, [&](const Work& some, unsigned tiles, bool) {
    const simt::Config config{.grid = dim3(tiles), .block = dim3(kThreads)};
    simt::launch<gradient_statistics_add_up_kernel>(stream, config, some);
  });
}

void blocks(Stream& stream, const BlocksArgs& args) {
  check_args(args);
  Segments segments;
  segments.add_complete(static_cast<float*>(const_cast<void*>(args.x)), 0, static_cast<std::int64_t>(args.elements));
  const Work work{.tiny = args.tiny, .blocks = args.blocks, .notes = args.notes};
  segments.launch(work, [&](const Work& some, unsigned tiles, bool) {
    const simt::Config config{.grid = dim3(tiles), .block = dim3(kThreads)};
    simt::launch<gradient_statistics_finish_kernel>(stream, config, some, Ending{});
  });
}

__global__ void __launch_bounds__(kThreads) gradient_statistics_total_kernel(Total total) {
  write_total<kThreads>(total);
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  blocks(stream, blocks_of(args));
  simt::launch<gradient_statistics_total_kernel>(stream, {.grid = dim3(1), .block = dim3(kThreads)}, total_of(args));
}

bool computes(DType dtype) { return dtype == DType::f32; }
bool supports(const Device& device, DType dtype) {
  return lib::supports_cuda_floating(device, dtype) && computes(dtype);
}

}  // namespace

Variant one_launch() { return {"one_launch", run, blocks, finish, add_up, supports, computes}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gradient_statistics
