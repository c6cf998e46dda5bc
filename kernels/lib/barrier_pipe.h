// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/lib/mbarrier.h"

namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// The barriers of a ring of kStages stages in shared memory, which one thread fills by asynchronous copies and several
/// readers use up. Round r goes through stage r % kStages. Nobody waits for anybody but for the stage that he needs: the
/// filler for all readers to have released it, a reader for its bytes.
///
///   filler:  for each round:  copy(..., pipe.begin_fill(round, bytes))
///   reader:  for each round:  pipe.wait_filled(round);  use the stage;  pipe.release(round), one thread for each reader
///
/// Example   tests/kernels/lib/bulk_tensor_test.cpp
template <int kStages>
struct BarrierPipe {
  Mbarrier filled[kStages];
  Mbarrier released[kStages];

  /// By one thread of the block; __syncthreads by all before they use it.
  __device__ void init(unsigned readers) {
    for (int stage = 0; stage < kStages; ++stage) {
      filled[stage].init(1);
      released[stage].init(readers);
    }
    mbarrier_init_fence();
  }

  /// Waits until the stage may be written. Returns the barrier at which the copies of the round, `bytes` in all, land.
  __device__ Mbarrier& begin_fill(int round, unsigned bytes, simt::Site site = simt::Site::current()) {
    released[round % kStages].wait(parity_of(round) ^ 1, site);  // of the round before; at once in the first
    filled[round % kStages].arrive_and_expect(bytes, site);
    return filled[round % kStages];
  }

  __device__ void wait_filled(int round, simt::Site site = simt::Site::current()) {
    filled[round % kStages].wait(parity_of(round), site);
  }

  __device__ void release(int round, simt::Site site = simt::Site::current()) {
    released[round % kStages].arrive(site);
  }

 private:
  __device__ static unsigned parity_of(int round) { return static_cast<unsigned>(round / kStages) & 1; }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
