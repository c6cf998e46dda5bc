// SPDX-License-Identifier: Apache-2.0
// Idea: whoever adds up partial sums has the gradients in registers: their squares cost no further read. And the last
//   block that finishes adds up what all blocks found, then makes the step's state ready. So one launch stands between
//   backward and the optimizer.
// Mapping: 16 threads have 64 neighbouring elements, four each. A block of 256 threads has 1024 elements; where there
//   are many slices to add up, fewer (down to 64): then several groups of threads share the slices of an element, and
//   their sums are added up in shared memory, in a fixed order. The arrays of partial sums, and the gradients between them that
//   are complete, are a list of segments, an argument of the kernel; a block finds its segment by bisection.
// Traffic and bound: reads each slice once, and each complete gradient; writes the sums, and an eighth of a byte for
//   each element. Bound by memory.
// Gains over the step before: one launch instead of one for each array, one for each run, and two; sums are not read
//   again.
// Still slow because: the optimizer reads the gradients again, as it needs the norm first.
// Limits: f32, for GPUs. More than 31 segments take several launches. `run` takes two: its workspace is not zeroed.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/lib/element.h"
#include "kernels/lib/last_block.h"
#include "kernels/ops/gradient_statistics/gradient_statistics.h"
#include "kernels/ops/gradient_statistics/total.cuh"
#include "kernels/ops/step_state/steps.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gradient_statistics {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kThreads = 256;
constexpr int kBlock = gradient_statistics::kBlock;
constexpr int kElements = 4;                       // of a thread
constexpr int kBlockThreads = kBlock / kElements;  // that share a block of elements
constexpr int kGroupsLog2 = 4;
constexpr int kGroups = kThreads / kBlockThreads;  // of so many threads
constexpr int kSlicesOfThread = 8;                 // wanted, so that all groups have some
constexpr int kSegments = 32;                      // a power of two, for the bisection
static_assert(kGroups == 1 << kGroupsLog2);
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct alignas(kElements * sizeof(float)) Four {
  float values[kElements];
};

/// Neighbouring gradients: partial sums of an array, or complete. It has the blocks of elements that begin in it, the
/// last of which may end in the next segment.
struct Segment {
  float* x = nullptr;
  const float* slices = nullptr;  // null: complete
  std::int64_t stride = 0;        // of the slices
  std::int64_t first_block = 0;   // among those of all gradients
  int blocks = 0;
  int first = 0;  // element of the first block
  int elements = 0;
  int summed = 0;           // of them, from slices; the others, after the end of an array, are complete
  int count = 0;            // of slices
  int parts_log2 = 0;       // of the parts that the slices are divided into, for as many groups of threads
  unsigned first_tile = 0;  // blocks of threads of the segments before
  bool wide = false;        // x and slices allow accesses of 16 bytes
  bool continues = false;   // the next segment begins where this one ends
};

/// Of a launch.
struct Work {
  Segment segments[kSegments] = {};
  int count = 0;
  float tiny = 0;
  float* blocks = nullptr;
  float* notes = nullptr;
};

/// What the last block does.
struct Ending {
  Total total;
  step_state::PrepareArgs prepare;
  unsigned* arrivals;  // null: nothing
};

/// The segment that this block of threads begins in.
__device__ int segment_of_tile(const Work& work) {
  int at = 0;
  SIMT_UNROLL
  for (int step = kSegments / 2; step > 0; step /= 2)
    if (at + step < work.count && work.segments[at + step].first_tile <= blockIdx.x) at += step;
  return at;
}

/// Some elements of a segment: from `i` on; at most four, none if it ends before.
struct Elements {
  const Segment& of;
  int i;
  int there;   // of the segment
  int summed;  // of those, from slices
  bool whole;  // there are four, in one access

  __device__ Elements(const Segment& segment, int first)
      : of(segment),
        i(first),
        there(segment.elements - first),
        summed(segment.summed - first),
        whole(segment.wide && (segment.slices ? summed : there) >= kElements) {}

  /// Every 2^parts_log2-th slice, from `part` on. Of complete elements, part 0 has all.
  __device__ Four load(int part, int parts_log2) const {
    Four sum{};
    const int slices = of.slices ? of.count : 1;
    const float* from = (of.slices ? of.slices + part * of.stride : of.x) + i;
    const std::int64_t step = of.stride << parts_log2;
    if (whole) {
      for (int s = part; s < slices; s += 1 << parts_log2, from += step) {
        const Four four = simt::load_as<Four>(from);
        SIMT_UNROLL
        for (int j = 0; j < kElements; ++j) sum.values[j] += four.values[j];
      }
      return sum;
    }
    for (int j = 0; j < kElements && j < there; ++j) {
      if (of.slices && j < summed)
        for (int s = part; s < slices; s += 1 << parts_log2) sum.values[j] += from[j + (s - part) * of.stride];
      else if (part == 0)
        sum.values[j] = of.x[i + j];
    }
    return sum;
  }
  __device__ void store(const Four& sum) const {
    if (!of.slices) return;
    if (whole) return simt::store_as<Four>(of.x + i, sum);
    for (int j = 0; j < kElements && j < summed; ++j) of.x[i + j] = sum.values[j];
  }
};

/// Writes what a block of elements adds up to. A whole warp calls it; 16 threads have the block, `there` elements each.
__device__ void write_block(const Work& work, std::int64_t block, bool writes, int there, const Four& four) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int half = lane & kBlockThreads;  // bits of a word that both blocks of a warp count in
  float sum = 0;
  int tiny = 0;
  SIMT_UNROLL
  for (int j = 0; j < kElements; ++j) {
    sum = fmaf(four.values[j], four.values[j], sum);
    tiny += fabsf(four.values[j]) < work.tiny && j < there ? 1 : 0;
  }
  SIMT_UNROLL
  for (int other = kBlockThreads / 2; other > 0; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
  tiny = __reduce_add_sync(~0u, tiny << half) >> half & 0xffff;
  // Searched only if the sum is not finite: an element is not, or the sum has overflowed.
  int first = kBlock;
  if (__any_sync(~0u, !isfinite(sum))) {
    for (int j = kElements - 1; j >= 0; --j)
      if (!isfinite(four.values[j])) first = lane % kBlockThreads * kElements + j;
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
  SIMT_SHARED(Four[kThreads], sums);
  const int thread = static_cast<int>(threadIdx.x);
  int at = segment_of_tile(work);
  const Segment& tile = work.segments[at];
  const int blocks = kGroups >> tile.parts_log2;
  const int group = thread / kBlockThreads;
  const int part = group >> (kGroupsLog2 - tile.parts_log2);
  const int block = static_cast<int>(blockIdx.x - tile.first_tile) * blocks + (group & (blocks - 1));
  const bool exists = block < tile.blocks;
  int i = tile.first + block * kBlock + thread % kBlockThreads * kElements;
  for (; exists && i >= work.segments[at].elements && work.segments[at].continues; ++at)
    i -= work.segments[at].elements;
  const Elements mine(work.segments[at], exists ? i : work.segments[at].elements);
  Four four = mine.load(part, tile.parts_log2);
  if (tile.parts_log2 > 0) {
    sums[thread] = four;
    __syncthreads();  // the sums of all parts are there
    for (int other = thread + blocks * kBlockThreads; part == 0 && other < kThreads; other += blocks * kBlockThreads) {
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < kElements; ++j) four.values[j] += sums[other].values[j];
    }
  }
  if (part == 0) mine.store(four);
  if constexpr (kStatistics)
    if (thread / 32 * 32 < blocks * kBlockThreads)
      write_block(work, tile.first_block + block, exists && part == 0, mine.there, four);
}

__global__ void __launch_bounds__(kThreads) gradient_statistics_add_up_kernel(SIMT_GRID_CONST(Work) work) {
  take_tile<false>(work);
}

__global__ void __launch_bounds__(kThreads)
    gradient_statistics_finish_kernel(SIMT_GRID_CONST(Work) work, SIMT_GRID_CONST(Ending) ending) {
  if (work.count > 0) take_tile<true>(work);
  if (!ending.arrivals || !lib::is_last_block(ending.arrivals)) return;
  write_total<kThreads>(ending.total);
  if (threadIdx.x == 0 && ending.prepare.state) step_state::prepare_step(ending.prepare);
}

bool is_wide(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(Four) == 0; }

std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// The segments of a launch, in the order of their elements.
class Segments {
 public:
  /// `begin`: the number of x[0] among all gradients.
  void add_complete(float* x, std::int64_t begin, std::int64_t elements) {
    constexpr std::int64_t kMost = std::int64_t{1} << 30;  // of a segment, whole blocks
    for (; elements > kMost; x += kMost, begin += kMost, elements -= kMost) add_complete(x, begin, kMost);
    add({.x = x, .elements = static_cast<int>(elements), .wide = is_wide(x)}, begin);
  }
  /// `elements`: with those after the end of the array.
  void add_sum(const PartialSum& sum, std::int64_t begin, std::int64_t elements) {
    int parts_log2 = 0;
    while (parts_log2 < kGroupsLog2 && kSlicesOfThread << parts_log2 < sum.count) ++parts_log2;
    add({.x = sum.to,
         .slices = sum.slices,
         .stride = sum.stride,
         .elements = narrow("elements", elements),
         .summed = narrow("elements", sum.elements),
         .count = narrow("slices", sum.count),
         .parts_log2 = parts_log2,
         .wide = is_wide(sum.to) && is_wide(sum.slices) && sum.stride % kElements == 0},
        begin);
  }
  /// Calls launch(work, tiles) for as many segments as a launch takes, so often until all are taken; the last time with
  /// `last`, also if there is nothing.
  template <class Launch>
  void launch(Work work, const Launch& launch) const {
    std::size_t taken = 0;
    do {
      unsigned tiles = 0;
      work.count = 0;
      while (taken < all_.size() && work.count + 1 < kSegments) {
        Segment& segment = work.segments[work.count++] = all_[taken++];
        segment.first_tile = tiles;
        tiles += tiles_of(segment);
      }
      // The last block of elements may end in the segment of the next launch.
      if (taken < all_.size()) {
        work.segments[work.count] = all_[taken];
        work.segments[work.count++].first_tile = std::numeric_limits<unsigned>::max();
      }
      launch(work, tiles, taken == all_.size());
    } while (taken < all_.size());
  }

 private:
  static int narrow(std::string_view argument, std::int64_t value) {
    return lib::narrow<int>("gradient_statistics", argument, value);
  }
  static unsigned tiles_of(const Segment& segment) {
    return static_cast<unsigned>((segment.blocks + (kGroups >> segment.parts_log2) - 1) /
                                 (kGroups >> segment.parts_log2));
  }
  void add(Segment segment, std::int64_t begin) {
    if (segment.elements == 0) return;
    if (!all_.empty() && begin == end_) all_.back().continues = true;
    const std::int64_t first = rounded_up(begin, kBlock);
    end_ = begin + segment.elements;
    segment.first_block = first / kBlock;
    segment.first = static_cast<int>(first - begin);
    segment.blocks = static_cast<int>((rounded_up(end_, kBlock) - first) / kBlock);
    all_.push_back(segment);
  }

  std::vector<Segment> all_;
  std::int64_t end_ = 0;  // of the last
};

/// Those of `runs`, in their order.
Segments segments_of(const FinishArgs& args) {
  std::vector<PartialSum> sums(args.partial_sums.begin(), args.partial_sums.end());
  std::erase_if(sums, [](const PartialSum& sum) { return sum.elements == 0; });
  std::ranges::sort(sums, std::less<>(), &PartialSum::to);
  Segments segments;
  for (const Run& run : args.runs) {
    const auto begin = static_cast<std::int64_t>(run.first_block) * kBlock;
    const auto elements = static_cast<std::int64_t>(run.elements);
    std::int64_t done = 0;
    auto sum = std::ranges::lower_bound(sums, run.x, std::less<>(), &PartialSum::to);
    for (; sum != sums.end() && std::less<>()(sum->to, run.x + run.elements); ++sum) {
      const std::int64_t first = sum->to - run.x;
      const std::int64_t end = std::min(rounded_up(first + sum->elements, kAlignment), elements);
      segments.add_complete(run.x + done, begin + done, first - done);
      segments.add_sum(*sum, begin + first, end - first);
      done = end;
    }
    segments.add_complete(run.x + done, begin + done, elements - done);
  }
  return segments;
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
  segments.launch({}, [&](const Work& some, unsigned tiles, bool) {
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
