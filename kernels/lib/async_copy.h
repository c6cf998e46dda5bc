// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/simt.h"

#ifndef __CUDACC__
#include "kernels/simt/cpu/memory.h"
#endif

namespace gradring::kernels {
inline namespace GRADRING_KERNEL_COPY {

/// An address in shared memory as instructions take it: found once, and offset as often as needed. On a GPU 32 bits; a
/// generic pointer is converted for each access.
struct SharedAddress {
#ifdef __CUDACC__
  unsigned address;
  __device__ explicit SharedAddress(const void* pointer)
      : address(static_cast<unsigned>(__cvta_generic_to_shared(pointer))) {}
#else
  unsigned char* address;
  explicit SharedAddress(void* pointer) : address(static_cast<unsigned char*>(pointer)) {}
#endif
  __device__ SharedAddress operator+(int bytes) const {
    SharedAddress sum = *this;
    sum.address += bytes;
    return sum;
  }
};

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
  simt::detail::start_async_copy<16>(shared, global);
#endif
}

/// The same for 16 bytes or 4, to `shared` + kOffset, a constant of the instruction. Without `exists`, the bytes in
/// shared memory become 0, and `global` is not read.
template <int kBytes, int kOffset>
__device__ inline void async_copy_or_zero(SharedAddress shared, const void* global, bool exists) {
  static_assert(kBytes == 16 || kBytes == 4);
#ifdef __CUDACC__
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0 + %3], [%1], 16, %2;" ::"r"(shared.address), "l"(global),
                 "r"(exists ? kBytes : 0), "n"(kOffset)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0 + %3], [%1], 4, %2;" ::"r"(shared.address), "l"(global),
                 "r"(exists ? kBytes : 0), "n"(kOffset)
                 : "memory");
#else
  simt::detail::start_async_copy<kBytes>(shared.address + kOffset, exists ? global : nullptr);
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
