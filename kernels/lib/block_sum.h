// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/simt.h"

namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Adds up kWidth numbers over the threads of a block: sum[j] = values[j] of thread 0 + values[j] of thread 1 + ...
///
/// Algorithm   every thread lays its numbers into shared memory; thread j then adds column j from the first thread to the
///             last. One barrier: on a CPU barriers are what costs, on a GPU the kernels that use this run for longer.
/// Result      in thread j (linear, of a one-dimensional block) for j < kWidth: the j-th sum; 0 in other threads.
/// Limits      blockDim = (kThreads, 1, 1), kThreads >= kWidth. Two calls with equal template arguments in one kernel need a
///             __syncthreads() between them: they share the table.
/// Numerics    deterministic, always in the same order.
template <int kThreads, class T, int kWidth>
__device__ inline T block_sum(const T (&values)[kWidth]) {
  static_assert(kThreads >= kWidth);
  using Table = T[kThreads][kWidth + 1];  // one more, so that the threads of a warp write to different banks
  SIMT_SHARED(Table, table);
  const int thread = static_cast<int>(threadIdx.x);
  for (int j = 0; j < kWidth; ++j) table[thread][j] = values[j];
  __syncthreads();  // column j holds what every thread wrote
  T sum = 0;
  if (thread < kWidth)
    for (int i = 0; i < kThreads; ++i) sum += table[i][thread];
  return sum;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
