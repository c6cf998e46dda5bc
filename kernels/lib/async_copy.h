// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/simt.h"

#ifndef __CUDACC__
#include "kernels/simt/cpu/memory.h"
#endif

namespace gradring::kernels {
inline namespace GRADRING_KERNEL_COPY {

/// Starts to copy 16 bytes from global to shared memory without a detour through registers. They land some time before
/// async_wait returns; the CPU lets them land only there, so that a missing wait shows.
///
/// Aliasing  both addresses are multiples of 16.
/// Order     within the calling thread; other threads of the block see the bytes after its async_wait and a
///           __syncthreads.
/// Errors    on the CPU simt::Error in a kernel launched flat.
/// Source    PTX ISA, cp.async (compute capability 8.0 and later).
/// Example   tests/kernels/simt/kernels.cu, staged_sum_kernel
__device__ inline void async_copy16(void* shared, const void* global) {
#ifdef __CUDACC__
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))),
      "l"(global)
      : "memory");
#else
  simt::detail::start_async_copy16(shared, global);
#endif
}

/// Closes a group: the copies that this thread has started since the last commit.
__device__ inline void async_commit() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  simt::detail::commit_async_copies();
#endif
}

/// Waits until at most `Pending` of this thread's newest groups are still on their way.
template <int Pending>
__device__ inline void async_wait() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#else
  simt::detail::wait_for_async_copies(Pending);
#endif
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels
