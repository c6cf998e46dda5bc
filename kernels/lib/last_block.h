// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/simt.h"

namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Whether this block is the last of the grid that comes here. One thread of each block calls it, behind a barrier: what
/// its block read and wrote before the barrier comes before what the last one does. The fences are those of the grid
/// barrier of cooperative groups.
///
/// `arrivals`, in device memory, is 0 at the launch, and 0 again after it; one word serves all launches of a stream.
__device__ inline bool arrives_last(unsigned* arrivals) {
  __threadfence();
  const bool is_last = atomicInc(arrivals, gridDim.x - 1) == gridDim.x - 1;
  if (is_last) __threadfence();
  return is_last;
}

/// The same for all threads of a block, which call it together, once: those of the last one find in memory what all other
/// blocks wrote.
///
/// Source    threadFenceReduction of NVIDIA's cuda-samples.
__device__ inline bool is_last_block(unsigned* arrivals) {
  SIMT_SHARED(bool, is_last);
  __syncthreads();  // the block has written
  if (threadIdx.x == 0) is_last = arrives_last(arrivals);
  __syncthreads();  // is_last is there
  return is_last;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
