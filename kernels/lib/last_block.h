// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/simt.h"

namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Whether this block is the last of the grid to come here: then it finds in memory what all other blocks wrote before,
/// and they read nothing after. All threads of a block call it, once.
///
/// `arrivals`, in device memory, is 0 at the launch, and 0 again after it; one word serves all launches of a stream.
///
/// Source    threadFenceReduction of NVIDIA's cuda-samples.
__device__ inline bool is_last_block(unsigned* arrivals) {
  SIMT_SHARED(bool, is_last);
  __threadfence();  // what this thread wrote comes before the block's arrival
  __syncthreads();  // so for all threads of the block
  if (threadIdx.x == 0) is_last = atomicInc(arrivals, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();  // is_last is there
  __threadfence();  // what this thread reads comes after all arrivals
  return is_last;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
