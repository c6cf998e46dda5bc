// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "kernels/lib/element.h"
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
          .tiny_count = args.tiny_count};
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
          .notes = blocks ? blocks + block_count(args.elements) : nullptr};
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

  __device__ void take(unsigned block, float note) {
    tiny += note > 0 ? static_cast<int>(note) : 0;
    first = note < 0 && block < first ? block : first;
  }
  __device__ void take(const Notes& other) {
    tiny += other.tiny;
    first = other.first < first ? other.first : first;
  }
};

/// The first thread of the block has written the results. Partial sum i is added to sum i % 1024, whatever kThreads;
/// 32 threads add up 32 of these sums each, and one thread those. All threads of a block of kThreads call it.
template <unsigned kThreads>
__device__ void write_total(const Total& total) {
  constexpr unsigned kSums = 1024;
  constexpr unsigned kOfThread = kSums / kThreads;
  constexpr unsigned kRest = 32;  // sums that are left for one thread
  constexpr bool kOnGpu = lib::kCopyKind == DeviceKind::cuda;
  constexpr unsigned kAtOnce = kOnGpu ? (kOfThread > 2 ? 2 : 8) : 1;  // rows in flight, as registers allow
  using Sums = float[kSums];
  using Table = Notes[kThreads];
  SIMT_SHARED(Sums, sums);
  SIMT_SHARED(Table, table);
  const unsigned thread = threadIdx.x;
  // A GPU's neighbouring threads have neighbouring sums; a CPU's thread has neighbouring ones, for its vectors.
  const auto sum_of_thread = [&](unsigned j) { return kOnGpu ? thread + j * kThreads : thread * kOfThread + j; };
  float mine[kOfThread] = {};
  Notes noted{0, Notes::kNone};
  for (unsigned first = 0; first < total.count; first += kAtOnce * kSums) {
    float block[kAtOnce][kOfThread], note[kAtOnce][kOfThread];
    SIMT_UNROLL
    for (unsigned i = 0; i < kAtOnce; ++i)
      for (unsigned j = 0; j < kOfThread; ++j) {
        const unsigned at = first + i * kSums + sum_of_thread(j);
        block[i][j] = at < total.count ? total.blocks[at] : 0.0f;
        note[i][j] = at < total.count ? total.notes[at] : 0.0f;
      }
    SIMT_UNROLL
    for (unsigned i = 0; i < kAtOnce; ++i)
      for (unsigned j = 0; j < kOfThread; ++j) {
        mine[j] += block[i][j];
        noted.take(first + i * kSums + sum_of_thread(j), note[i][j]);
      }
  }
  for (unsigned j = 0; j < kOfThread; ++j) sums[sum_of_thread(j)] = mine[j];
  table[thread] = noted;
  __syncthreads();  // a column is of many threads
  if (thread < kRest) {
    float sum = 0;
    SIMT_UNROLL
    for (unsigned i = 0; i < kSums / kRest; ++i) sum += sums[i * kRest + thread];
    SIMT_UNROLL
    for (unsigned i = 1; i < kThreads / kRest; ++i) noted.take(table[i * kRest + thread]);
    sums[thread] = sum;  // in place: nobody else reads this column
    table[thread] = noted;
  }
  __syncthreads();  // the last sum is of many threads, too
  if (thread > 0) return;
  float all = 0;
  Notes notes{0, Notes::kNone};
  SIMT_UNROLL
  for (unsigned i = 0; i < kRest; ++i) {
    all += sums[i];
    notes.take(table[i]);
  }
  *total.sum = all;
  *total.non_finite = isnan(all) ? 1 : 0;
  *total.first_non_finite = -1;
  if (notes.first != Notes::kNone)
    *total.first_non_finite =
        static_cast<std::int64_t>(notes.first * kBlock) - 1 - static_cast<int>(total.notes[notes.first]);
  *total.tiny_count = notes.tiny;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gradient_statistics
