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

constexpr unsigned kThreads = 256;
constexpr int kBlock = gradient_statistics::kBlock;
constexpr int kHalf = kAlignment;  // of a block: arrays begin at none but its halves
constexpr int kFour = 4;           // elements of an access
constexpr unsigned kBlockThreads = kHalf / kFour;
constexpr int kGroupsLog2 = 5;
constexpr int kGroups = kThreads / kBlockThreads;  // of so many threads
constexpr int kPartsLog2 = 4;                      // of the slices of an array, at most
constexpr std::int64_t kSlicesOfPart = 16;         // where there may be another part
constexpr int kSegments = 32;
constexpr int kTileTable = 64;
static_assert(kBlock == 2 * kHalf && kGroups == 1 << kGroupsLog2);
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct alignas(kFour * sizeof(float)) Four {
  float values[kFour];
};

/// Neighbouring gradients: partial sums of an array, or complete. It has the blocks of elements that begin in it, the
/// last of which may end in the next segment.
struct Segment {
  float* x = nullptr;
  const float* slices = nullptr;  // of complete ones x, as if it were one slice
  std::int64_t stride = 0;        // of the slices
  std::int64_t first_block = 0;   // among those of all gradients
  int blocks = 0;
  int first = 0;  // element of the first block
  int elements = 0;
  int summed = 0;      // of them, from slices; the others, after the end of an array, are complete
  int wide = 0;        // of them, in accesses of 16 bytes
  int count = 0;       // of slices
  int parts_log2 = 0;  // of the parts that the slices are divided into, for as many groups of threads
  unsigned first_tile = std::numeric_limits<unsigned>::max();  // number of tiles of the segments before
  bool continues = false;                                      // the next segment begins where this one ends
};

/// Of a launch.
struct Work {
  Segment segments[kSegments] = {};           // the last one's successor has no tiles
  unsigned char segment_of[kTileTable] = {};  // of the first of each 2^tiles_log2 tiles
  int tiles_log2 = 0;
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

__device__ int segment_of_tile(const Work& work, unsigned tile) {
  int at = work.segment_of[tile >> work.tiles_log2];
  while (work.segments[at + 1].first_tile <= tile) ++at;
  return at;
}

/// What a thread has of a block: four neighbouring elements of each half.
struct Elements {
  Four halves[2];

  __device__ void add(const Elements& other) {
    SIMT_UNROLL
    for (int h = 0; h < 2; ++h) {
      SIMT_UNROLL
      for (int j = 0; j < kFour; ++j) halves[h].values[j] += other.halves[h].values[j];
    }
  }
  /// In two accesses; `from` is of the first half.
  static __device__ Elements load(const float* from) {
    return {simt::load_as<Four>(from), simt::load_as<Four>(from + kHalf)};
  }
  __device__ void store(float* to) const {
    simt::store_as<Four>(to, halves[0]);
    simt::store_as<Four>(to + kHalf, halves[1]);
  }
};

/// Element i of a segment, which may be in a later one.
struct Element {
  const Segment* of;
  int i;

  __device__ Element(const Segment& first, int at) : of(&first), i(at) {
    for (; i >= of->elements && of->continues; ++of) i -= of->elements;
  }
  __device__ bool exists() const { return i < of->elements; }
  /// The sum of slices part, part + parts and so on; part 0 has what has no slices.
  __device__ float load(int part, int parts) const {
    float sum = 0;
    if (i < of->summed)
      for (int s = part; s < of->count; s += parts) sum += of->slices[s * of->stride + i];
    else if (exists() && part == 0)
      sum = of->x[i];
    return sum;
  }
  __device__ void store(float sum) const {
    if (i < of->summed && of->x != of->slices) of->x[i] = sum;
  }
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
  const int i = tile.first + block * kBlock + static_cast<int>(thread % kBlockThreads * kFour);
  const bool exists = block < tile.blocks;
  const bool whole = i + kHalf + kFour <= tile.wide;
  Elements mine{};
  int missing = 0;
  if (whole) {
    const float* from = tile.slices + part * tile.stride + i;
    const std::int64_t step = parts * tile.stride;
    mine = Elements::load(from);
    for (int s = part + parts; s < tile.count; s += parts) mine.add(Elements::load(from += step));
  } else if (exists) {
    for (int e = 0; e < 2 * kFour; ++e) {
      const Element element(tile, i + e / kFour * kHalf + e % kFour);
      sums[e / kFour][thread].values[e % kFour] = element.load(part, parts);
      missing += element.exists() ? 0 : 1;
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
    for (int e = 0; e < 2 * kFour; ++e)
      Element(tile, i + e / kFour * kHalf + e % kFour).store(sums[e / kFour][thread].values[e % kFour]);
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
    const int all = static_cast<int>(elements);
    add({.x = x, .slices = x, .elements = all, .summed = all, .wide = is_wide(x) ? all : 0, .count = 1}, begin);
  }
  /// `elements`: with those after the end of the array. Few slices are one part, whose order is that of all other sums
  /// of slices.
  void add_sum(const PartialSum& sum, std::int64_t begin, std::int64_t elements) {
    int parts_log2 = 0;
    while (parts_log2 < kPartsLog2 && sum.count >> parts_log2 > kSlicesOfPart) ++parts_log2;
    const bool wide = is_wide(sum.to) && is_wide(sum.slices) && sum.stride % kFour == 0;
    add({.x = sum.to,
         .slices = sum.slices,
         .stride = sum.stride,
         .elements = narrow("elements", elements),
         .summed = narrow("elements", sum.elements),
         .wide = wide && sum.count > 0 ? narrow("elements", sum.elements) : 0,
         .count = narrow("slices", sum.count),
         .parts_log2 = parts_log2},
        begin);
  }
  /// Calls launch(work, tiles) for as many segments as a launch takes, so often until all are taken; the last time with
  /// `last`, also if there is nothing.
  template <class Launch>
  void launch(Work work, const Launch& launch) const {
    std::size_t taken = 0;
    do {
      std::ranges::fill(work.segments, Segment{});
      unsigned tiles = 0;
      int count = 0;
      for (; taken < all_.size() && count + 1 < kSegments; ++count) {
        Segment& segment = work.segments[count] = all_[taken++];
        segment.first_tile = tiles;
        tiles += tiles_of(segment);
      }
      // The last block of elements may end in the segment of the next launch.
      if (taken < all_.size()) work.segments[count] = all_[taken];
      fill_table(work, tiles);
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
  static void fill_table(Work& work, unsigned tiles) {
    work.tiles_log2 = 0;
    while (tiles >> work.tiles_log2 >= kTileTable) ++work.tiles_log2;
    unsigned char at = 0;
    for (unsigned entry = 0; entry < kTileTable; ++entry) {
      while (work.segments[at + 1].first_tile <= entry << work.tiles_log2) ++at;
      work.segment_of[entry] = at;
    }
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
