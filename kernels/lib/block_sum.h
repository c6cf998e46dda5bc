// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/simt.h"

namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Adds up kWidth numbers over the threads of a block: sum j = values[j] of thread 0 + values[j] of thread 1 + ...
///
/// Algorithm   every thread lays its numbers into shared memory; thread j then adds column j from the first thread to the
///             last. One barrier: on a CPU barriers are what costs, on a GPU the kernels that use this run for longer.
/// Result      visit(j, sum) is called for every j, by thread j modulo kThreads.
/// Limits      blockDim = (kThreads, 1, 1). Two calls with equal template arguments in one kernel need a __syncthreads()
///             between them: they share the table.
/// Numerics    deterministic, always in the same order.
template <int kThreads, class T, int kWidth, class Visit>
__device__ inline void block_sum(const T (&values)[kWidth], Visit visit) {
  using Table = T[kThreads][kWidth + 1];  // one more, so that the threads of a warp write to different banks
  SIMT_SHARED(Table, table);
  const int thread = static_cast<int>(threadIdx.x);
  for (int j = 0; j < kWidth; ++j) table[thread][j] = values[j];
  __syncthreads();  // column j holds what every thread wrote
  for (int j = thread; j < kWidth; j += kThreads) {
    T sum = 0;
    for (int i = 0; i < kThreads; ++i) sum += table[i][j];
    visit(j, sum);
  }
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
