// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "kernels/lib/reference.h"
#include "kernels/ops/gradient_statistics/gradient_statistics.h"

/// What a launch of the variant one_launch works on: the gradients of a step as a list of segments, and which blocks of
/// threads have them.
namespace gradring::kernels::gradient_statistics {
inline namespace GRADRING_KERNEL_COPY {

inline constexpr unsigned kThreads = 256;
inline constexpr int kHalf = kAlignment;  // of a block: arrays begin at none but its halves
inline constexpr int kFour = 4;           // elements of an access
inline constexpr unsigned kBlockThreads = kHalf / kFour;
inline constexpr int kGroupsLog2 = 5;
inline constexpr int kGroups = kThreads / kBlockThreads;  // of so many threads
inline constexpr int kPartsLog2 = 4;                      // of the slices of an array, at most
inline constexpr std::int64_t kSlicesOfPart = 16;         // where there may be another part
inline constexpr int kSegments = 32;
inline constexpr int kTileTable = 64;
static_assert(kBlock == std::size_t{2} * kHalf && kGroups == 1 << kGroupsLog2);

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

inline bool is_wide(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % (kFour * sizeof(float)) == 0;
}

inline std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
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
inline Segments segments_of(const FinishArgs& args) {
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

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gradient_statistics
