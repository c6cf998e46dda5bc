// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "kernels/lib/channel_vector.h"
#include "kernels/lib/element.h"
#include "kernels/lib/load_ahead.h"
#include "kernels/lib/reference.h"
#include "kernels/ops/gradient_statistics/gradient_statistics.h"
#include "kernels/simt/simt.h"

/// The second step: one block adds up the sums and notes of all blocks.
namespace gradring::kernels::gradient_statistics {
inline namespace GRADRING_KERNEL_COPY {

struct Total {
  const float* blocks;
  const float* notes;
  unsigned count;
  float* sum;
  std::int32_t* non_finite;
  std::int64_t* first_non_finite;
  std::int64_t* tiny_count;
  bool wide;  // four neighbours of blocks, and of notes, are one aligned access
};

/// Of Args or FinishArgs, which name the results alike.
template <class SomeArgs>
Total total_of(const SomeArgs& args, const float* blocks, const float* notes, std::size_t count) {
  return {.blocks = blocks,
          .notes = notes,
          .count = lib::narrow<unsigned>("gradient_statistics", "blocks", static_cast<std::int64_t>(count)),
          .sum = args.sum,
          .non_finite = args.non_finite,
          .first_non_finite = args.first_non_finite,
          .tiny_count = args.tiny_count,
          .wide = lib::fit_vectors<float, 4>(0, {blocks, notes})};
}
inline Total total_of(const FinishArgs& args) { return total_of(args, args.blocks, args.notes, args.count); }

/// Sums and notes in the workspace of Args.
inline BlocksArgs blocks_of(const Args& args) {
  auto* const blocks = static_cast<float*>(args.workspace);
  return {.dtype = args.dtype,
          .x = args.x,
          .elements = args.elements,
          .tiny = args.tiny,
          .blocks = blocks,
          .notes = blocks ? blocks + notes_behind(block_count(args.elements)) : nullptr};
}
inline Total total_of(const Args& args) {
  const BlocksArgs blocks = blocks_of(args);
  return total_of(args, blocks.blocks, blocks.notes, block_count(args.elements));
}

/// What some notes say together. Shared memory takes no initial values.
struct Notes {
  static constexpr unsigned kNone = std::numeric_limits<unsigned>::max();

  long long tiny;
  unsigned first;  // block with a non-finite element

  __device__ void take(const Notes& other) {
    tiny += other.tiny;
    first = other.first < first ? other.first : first;
  }
};

/// Some neighbouring sums and their notes. Of what does not exist both are 0.
template <int kCount>
struct Neighbours {
  float blocks[kCount], notes[kCount];

  __device__ static Neighbours load(const Total& total, unsigned at) {
    Neighbours some;
    for (unsigned j = 0; j < kCount; ++j) {
      const bool exists = at + j < total.count;
      some.blocks[j] = exists ? total.blocks[at + j] : 0.0f;
      some.notes[j] = exists ? total.notes[at + j] : 0.0f;
    }
    return some;
  }
  /// In vectors: all exist.
  __device__ static Neighbours load_wide(const Total& total, unsigned at) {
    Neighbours some;
    lib::load_channels(total.blocks + at, some.blocks);
    lib::load_channels(total.notes + at, some.notes);
    return some;
  }
};

/// What a thread has of all partial sums: some groups of kCount neighbours.
template <int kCount>
struct Gathered {
  float sums[kCount] = {};
  Notes notes{0, Notes::kNone};

  __device__ void take(unsigned at, const Neighbours<kCount>& some) {
    float tiny = 0, least = 0;
    for (int j = 0; j < kCount; ++j) {
      sums[j] += some.blocks[j];
      tiny += some.notes[j] > 0 ? some.notes[j] : 0.0f;  // exact: whole numbers up to 64
      least = some.notes[j] < least ? some.notes[j] : least;
    }
    notes.tiny += static_cast<int>(tiny);
    if (least < 0) [[unlikely]]
      note_first(at, some);
  }
  __device__ void note_first(unsigned at, const Neighbours<kCount>& some) {
    for (int j = kCount - 1; j >= 0; --j)
      if (some.notes[j] < 0 && at + static_cast<unsigned>(j) < notes.first) notes.first = at + static_cast<unsigned>(j);
  }
};

/// The first thread of the block has written the results, and returns the sum, which is NaN if an element is not finite.
/// Partial sum i is added to sum i % 1024, whatever kThreads; 32 threads add up 32 of these sums each, and then theirs, on
/// a GPU by shuffles. All threads of a block of kThreads call it.
template <unsigned kThreads>
__device__ float write_total(const Total& total) {
  constexpr unsigned kSums = 1024;
  constexpr unsigned kOfThread = kSums / kThreads;
  constexpr unsigned kRest = 32;  // sums that are left for shuffles
  constexpr bool kOnGpu = lib::kCopyKind == DeviceKind::cuda;
  constexpr int kAtOnce = kOnGpu ? 8 : 1;  // rows on their way to a thread
  using Sums = float[kSums];
  using Table = Notes[kThreads];
  SIMT_SHARED(Sums, sums);
  SIMT_SHARED(Table, table);
  const unsigned thread = threadIdx.x;
  const unsigned first = thread * kOfThread;  // of its sums, which are neighbours
  using Some = Neighbours<kOfThread>;
  Gathered<kOfThread> mine;
  const auto take = [&](unsigned at, const Some& some) { mine.take(at, some); };
  constexpr unsigned kVector = 4;
  if (kOnGpu && kOfThread == kVector && total.wide) {
    const unsigned whole = total.count / kVector * kVector;
    lib::load_ahead<kAtOnce>(
        first, whole, kSums, [&](unsigned at) { return Some::load_wide(total, at); }, take);
    if (whole < total.count && whole % kSums == first) take(whole, Some::load(total, whole));
  } else {
    lib::load_ahead<kOfThread == 1 ? kAtOnce : 1>(
        first, total.count, kSums, [&](unsigned at) { return Some::load(total, at); }, take);
  }
  for (unsigned j = 0; j < kOfThread; ++j) sums[first + j] = mine.sums[j];
  table[thread] = mine.notes;
  __syncthreads();  // a column is of many threads
  if (thread >= kRest) return 0;
  float all = 0;
  for (unsigned i = 0; i < kSums / kRest; ++i) all += sums[i * kRest + thread];
  Notes notes = mine.notes;
  for (unsigned i = 1; i < kThreads / kRest; ++i) notes.take(table[i * kRest + thread]);
  if constexpr (kOnGpu) {
    for (unsigned other = kRest / 2; other > 0; other /= 2) {
      all += __shfl_xor_sync(~0u, all, other);
      notes.take({__shfl_xor_sync(~0u, notes.tiny, other), __shfl_xor_sync(~0u, notes.first, other)});
    }
  } else {               // to which a shuffle is as much as all these additions
    sums[thread] = all;  // in place: nobody else reads this column
    table[thread] = notes;
    __syncwarp();  // the last sum is of many threads, too
    for (unsigned i = 1; i < kRest && thread == 0; ++i) {
      all += sums[i];
      notes.take(table[i]);
    }
  }
  if (thread > 0) return 0;
  *total.sum = all;
  *total.non_finite = isnan(all) ? 1 : 0;
  *total.first_non_finite = -1;
  if (notes.first != Notes::kNone)
    *total.first_non_finite =
        static_cast<std::int64_t>(notes.first * kBlock) - 1 - static_cast<int>(total.notes[notes.first]);
  *total.tiny_count = notes.tiny;
  return all;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gradient_statistics
