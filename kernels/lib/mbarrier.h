// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/simt/simt.h"
#include "kernels/simt/site.h"

#ifndef __CUDACC__
#include "kernels/simt/cpu/mbarrier.h"
#endif

/// Barriers that lie in shared memory, of which a block may have several. Each goes through phases: one ends when all
/// arrivals that it was initialised for have come, and all bytes of asynchronous copies that they let it expect; then the
/// next begins. Who waits says the parity of the phase whose end it wants: 0 for the first, 1 for the second, 0 for the
/// third. To wait for parity 1 at once is to wait for the phase before the first, which has ended.
///
/// `site` is the caller's place, for messages; kernels never pass it.
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Order     what a thread did before it arrives, and what the expected copies wrote, is seen by who has waited.
/// Errors    on the CPU simt::Error: not initialised, or twice; more arrivals or bytes than a phase has; a phase that never
///           ends, with what it lacks.
/// Source    PTX ISA, mbarrier (compute capability 9.0 and later).
/// Example   tests/kernels/lib/bulk_tensor_test.cpp
struct Mbarrier {
  std::uint64_t word;

  /// By one thread; then mbarrier_init_fence by it, and __syncthreads by all, before anybody else uses the barrier.
  __device__ void init(unsigned arrivals, [[maybe_unused]] simt::Site site = simt::Site::current()) {
#ifdef __CUDACC__
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
#else
    simt::detail::init_mbarrier(word, arrivals, site);
#endif
  }

  __device__ void arrive([[maybe_unused]] simt::Site site = simt::Site::current()) {
#ifdef __CUDACC__
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
#else
    simt::detail::arrive_at_mbarrier("Mbarrier::arrive", word, 0, site);
#endif
  }

  /// Arrives, and lets the phase expect `bytes`: at most 2^20 - 1 in all.
  __device__ void arrive_and_expect(unsigned bytes, [[maybe_unused]] simt::Site site = simt::Site::current()) {
#ifdef __CUDACC__
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
#else
    simt::detail::arrive_at_mbarrier("Mbarrier::arrive_and_expect", word, bytes, site);
#endif
  }

  __device__ void wait(unsigned parity, [[maybe_unused]] simt::Site site = simt::Site::current()) {
#ifdef __CUDACC__
    unsigned ended = 0;
    while (!ended)  // try_wait sleeps for a while itself
      asm volatile(
          "{\n.reg .pred ended;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
          "selp.u32 %0, 1, 0, ended;\n}"
          : "=r"(ended)
          : "r"(address()), "r"(parity)
          : "memory");
#else
    simt::detail::wait_for_mbarrier(word, parity, site);
#endif
  }

#ifdef __CUDACC__
  __device__ unsigned address() const { return static_cast<unsigned>(__cvta_generic_to_shared(&word)); }
#endif
};

/// Shows the copy engine the barriers that this thread has initialised.
__device__ inline void mbarrier_init_fence() {
#ifdef __CUDACC__
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
