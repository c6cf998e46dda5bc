// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/simt/engine/error.h"
#include "kernels/simt/engine/tensor_layout.h"
#include "kernels/simt/simt.h"

#ifdef __CUDACC__
#include "kernels/simt/cuda/tensor_map.h"
#else
#include "kernels/simt/cpu/hopper.h"
#endif

/// Barriers that lie in shared memory, of which a block may have several. Each goes through phases: one ends when all
/// arrivals that it was initialised for have come, and all bytes of asynchronous copies that they let it expect; then
/// the next begins. A waiter gives the parity of the phase whose end it waits for: 0 for the first, 1 for the second, 0
/// for the third. To wait for parity 1 at once is to wait for the phase before the first, which has ended.
///
/// `site` is the caller's source location, for messages; kernels do not pass it.
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Order     what a thread did before it arrives, and what the expected copies wrote, is visible after a wait.
/// Errors    on the CPU simt::Error: not initialised, or twice; more arrivals or bytes than a phase has; a phase that
///           never ends, with what it lacks.
/// Source    PTX ISA, mbarrier (compute capability 9.0 and later).
/// Example   tests/kernels/lib/tensor_core_test.cpp
struct Mbarrier {
  std::uint64_t word;

  /// By one thread; then mbarrier_init_fence by it, and __syncthreads by all, before another thread uses the barrier.
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

/// The barriers of a multi-stage buffer in shared memory, which one producer thread fills by asynchronous copies and
/// several consumers read. K-tile i uses stage i % kStages. A thread waits only for the stage that it needs: the
/// producer until all consumers have released it, a consumer until its bytes have landed.
///
///   producer:  for each k-tile:  copy(..., pipe.begin_fill(k_tile, bytes))
///   consumer:  for each k-tile:  pipe.wait_filled(k_tile);  read the stage;  pipe.release(k_tile), one thread of each
///
/// Example   tests/kernels/lib/tensor_core_test.cpp
template <int kStages>
struct BarrierPipe {
  Mbarrier filled[kStages];
  Mbarrier released[kStages];

  /// By one thread of the block; __syncthreads by all before they use it.
  __device__ void init(unsigned consumers) {
    for (int stage = 0; stage < kStages; ++stage) {
      filled[stage].init(1);
      released[stage].init(consumers);
    }
    mbarrier_init_fence();
  }

  /// Waits until the stage may be written. Returns the barrier at which the copies of the k-tile, `bytes` in all,
  /// land.
  __device__ Mbarrier& begin_fill(int k_tile, unsigned bytes, simt::Site site = simt::Site::current()) {
    released[k_tile % kStages].wait(parity_of(k_tile) ^ 1,
                                    site);  // of kStages k-tiles before; at once in the first ones
    filled[k_tile % kStages].arrive_and_expect(bytes, site);
    return filled[k_tile % kStages];
  }

  __device__ void wait_filled(int k_tile, simt::Site site = simt::Site::current()) {
    filled[k_tile % kStages].wait(parity_of(k_tile), site);
  }

  __device__ void release(int k_tile, simt::Site site = simt::Site::current()) {
    released[k_tile % kStages].arrive(site);
  }

 private:
  __device__ static unsigned parity_of(int k_tile) { return static_cast<unsigned>(k_tile / kStages) & 1; }
};

/// TMA: the copy engine of sm_90, which brings a box of a matrix to shared memory without a thread computing an
/// address.
///
/// On the host, simt::make_tensor_map(simt::TensorBox{...}) describes the matrix; a kernel takes the result as
/// SIMT_GRID_CONST(simt::TensorMap).

/// Starts to copy the box of `map` whose first element is at (row, column) to `shared`, and lets its bytes land at
/// `landed`. What reaches past the matrix, on any side, becomes 0, and counts as bytes. The rows of the box, 128 bytes
/// each, are swizzled as simt/engine/tensor_layout.h says.
///
/// Aliasing  `shared` is a multiple of 128, and of 1,024 if the swizzle of its rows matters.
/// Order     the bytes are visible after a wait for `landed`; on the CPU they are written at once, but only waiters
///           are ordered behind it. Earlier reads of `shared` by others need a barrier, too.
/// Threads   one.
/// Errors    on the CPU simt::Error: an address that is not aligned, or not in dynamic shared memory; bytes that the
///           barrier does not expect.
/// Source    PTX ISA, cp.async.bulk.tensor (compute capability 9.0 and later).
/// Example   tests/kernels/lib/tensor_core_test.cpp
__device__ inline void bulk_load(void* shared, const simt::TensorMap& map, int row, int column, Mbarrier& landed,
                                 [[maybe_unused]] simt::Site site = simt::Site::current()) {
#ifdef __CUDACC__
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          static_cast<unsigned>(__cvta_generic_to_shared(shared))),
      "l"(&map), "r"(column), "r"(row), "r"(landed.address())
      : "memory");
#else
  simt::detail::load_box(shared, map, column, row, landed.word, site);
#endif
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
