// SPDX-License-Identifier: Apache-2.0
// Words of shared memory that order the threads of a block: cuda::latch, counting_semaphore, atomic_ref, fences, locks.
#include <cuda/atomic>
#include <cuda/latch>
#include <cuda/semaphore>

#include "scripts/foreign_cuda/cccl/check.h"

namespace {

constexpr int kWarp = 32;
constexpr int kSteps = 50;
using BlockInt = cuda::atomic_ref<int, cuda::thread_scope_block>;

/// Each thread reads what another one wrote.
__global__ void reverse(int* out) {
  using Latch = cuda::latch<cuda::thread_scope_block>;
  __shared__ alignas(Latch) char memory[sizeof(Latch)];
  __shared__ int words[64];
  Latch& latch = *reinterpret_cast<Latch*>(memory);
  if (threadIdx.x == 0) new (&latch) Latch(64);
  __syncthreads();
  words[threadIdx.x] = static_cast<int>(threadIdx.x);
  latch.arrive_and_wait();
  out[threadIdx.x] = words[63 - threadIdx.x];
}

/// The last warp adds up what all left.
__global__ void sum_by_last_warp(int* out) {
  __shared__ int sums[8];
  __shared__ unsigned arrived;
  if (threadIdx.x == 0) arrived = 0;
  __syncthreads();
  const int sum = __reduce_add_sync(~0u, static_cast<int>(threadIdx.x));
  if (threadIdx.x % kWarp != 0) return;
  sums[threadIdx.x / kWarp] = sum;
  __threadfence_block();
  const bool is_last = atomicAdd(&arrived, 1) == 7;
  __threadfence_block();
  if (!is_last) return;
  *out = 0;
  for (const int each : sums) *out += each;
}

/// One warp fills four slots, another one empties them.
__global__ void pass_on(const int* in, int* out) {
  __shared__ int slots[4][kWarp];
  __shared__ int filled, emptied;
  if (threadIdx.x == 0) filled = emptied = 0;
  __syncthreads();
  const unsigned lane = threadIdx.x % kWarp;
  const bool fills = threadIdx.x < kWarp;
  int sum = 0;
  for (int i = 0; i < kSteps; ++i) {
    if (lane == 0 && fills)
      while (BlockInt(emptied).load(cuda::memory_order_acquire) <= i - 4) {
      }
    if (lane == 0 && !fills)
      while (BlockInt(filled).load(cuda::memory_order_acquire) <= i) {
      }
    __syncwarp();
    if (fills)
      slots[i % 4][lane] = in[kWarp * i + lane];
    else
      sum += slots[i % 4][lane];
    __syncwarp();
    if (lane == 0) BlockInt(fills ? filled : emptied).store(i + 1, cuda::memory_order_release);
  }
  if (!fills) out[lane] = sum;
}

__global__ void sum_under_a_lock(int* out) {
  __shared__ int lock, sum;
  if (threadIdx.x == 0) lock = sum = 0;
  __syncthreads();
  for (bool is_added = false; !is_added;) {
    if (atomicCAS(&lock, 0, 1) != 0) continue;
    __threadfence_block();
    sum += static_cast<int>(threadIdx.x);
    __threadfence_block();
    atomicExch(&lock, 0);
    is_added = true;
  }
  __syncthreads();
  if (threadIdx.x == 0) *out = sum;
}

/// At most two threads are inside at once.
__global__ void count_inside(int* out) {
  using Semaphore = cuda::counting_semaphore<cuda::thread_scope_block, 2>;
  __shared__ alignas(Semaphore) char memory[sizeof(Semaphore)];
  __shared__ int inside, most;
  Semaphore& semaphore = *reinterpret_cast<Semaphore*>(memory);
  if (threadIdx.x == 0) {
    new (&semaphore) Semaphore(2);
    inside = most = 0;
  }
  __syncthreads();
  semaphore.acquire();
  atomicMax(&most, atomicAdd(&inside, 1) + 1);
  atomicSub(&inside, 1);
  semaphore.release();
  __syncthreads();
  if (threadIdx.x == 0) *out = most;
}

__global__ void hand_over(int* out) {
  __shared__ int data, is_there;
  if (threadIdx.x == 0) is_there = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    data = 5;
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_block);
    BlockInt(is_there).store(1, cuda::memory_order_relaxed);
  } else if (threadIdx.x == 2 * kWarp) {
    while (BlockInt(is_there).load(cuda::memory_order_relaxed) == 0) {
    }
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_block);
    *out = data;
  }
}

}  // namespace

int main() {
  const std::vector<int> source = numbers(kWarp * kSteps, 0, 99);
  Array<int> in(source), reversed(64), sum(1), sums(kWarp), locked(1), inside(1), handed(1);
  reverse<<<1, 64>>>(reversed.data());
  sum_by_last_warp<<<1, 256>>>(sum.data());
  pass_on<<<1, 64>>>(in.data(), sums.data());
  sum_under_a_lock<<<1, 96>>>(locked.data());
  count_inside<<<1, 64>>>(inside.data());
  hand_over<<<1, 96>>>(handed.data());
  check(cudaDeviceSynchronize());

  std::vector<int> down(64), expected(kWarp);
  for (int i = 0; i < 64; ++i) down[i] = 63 - i;
  for (int i = 0; i < kWarp * kSteps; ++i) expected[i % kWarp] += source[i];
  return verdict(reversed.values() == down && sum.values()[0] == 255 * 128 && sums.values() == expected &&
                 locked.values()[0] == 95 * 48 && inside.values()[0] <= 2 && handed.values()[0] == 5);
}
