// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/runtime/stream.h"

namespace gradring::simt_test {
inline namespace GRADRING_KERNEL_COPY {

using kernels::Stream;

/// What each thread of one block gets from the warp functions when it gives its number in the block.
struct WarpResults {
  std::int32_t broadcast;             ///< __shfl_sync from lane 3
  std::int32_t rotated;               ///< __shfl_sync from the next lane, width 8
  std::int32_t butterfly;             ///< __shfl_xor_sync with 5
  std::int32_t from_above;            ///< __shfl_down_sync by 4, width 16
  std::int32_t from_below;            ///< __shfl_up_sync by 2
  double wide;                        ///< __shfl_xor_sync of a double with 1
  std::uint32_t odd_lanes;            ///< __ballot_sync
  std::int32_t any_is_7;              ///< __any_sync
  std::int32_t all_below_64;          ///< __all_sync
  std::uint32_t equal_quarter;        ///< __match_any_sync of lane / 8
  std::int32_t sum, least, greatest;  ///< __reduce_*_sync of a negative and positive mix
  std::uint32_t bits_and, bits_or, bits_xor;
};
/// threads is a multiple of 32.
void exercise_warps(Stream& stream, unsigned threads, WarpResults* results);

/// The two halves of a warp work apart, each with its own mask; out[thread] = sum over its half.
void sum_halves(Stream& stream, std::int32_t* out);

/// A reduction through shared memory within one warp, ordered by __syncwarp alone.
void sum_with_syncwarp(Stream& stream, const float* x, float* total);

/// One warp of fewer than 32 threads, named by a full mask.
void ballot_in_short_warp(Stream& stream, unsigned threads, std::uint32_t* ballot);

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simt_test
