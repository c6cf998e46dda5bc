// SPDX-License-Identifier: Apache-2.0
// Cooperative groups (tiles, labelled and coalesced groups, reduce, scan), cuda::pipeline, atomics of the whole GPU.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cuda/atomic>
#include <cuda/pipeline>
#include <cuda/semaphore>

#include "scripts/foreign_cuda/cccl/check.h"

namespace {

namespace cg = cooperative_groups;
constexpr int kCount = 1024;
constexpr int kThreads = 128;
constexpr int kTile = 8;
using Counter = cuda::atomic<int, cuda::thread_scope_device>;
using Lock = cuda::binary_semaphore<cuda::thread_scope_device>;

/// Of tiles of eight: sum, sum up to the thread, sum of the equally odd ones.
__global__ void sum_tiles(const int* in, int3* out) {
  const auto tile = cg::tiled_partition<kTile>(cg::this_thread_block());
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const auto equally_odd = cg::labeled_partition(tile, in[i] & 1);
  out[i] = {cg::reduce(tile, in[i], cg::plus<int>()), cg::inclusive_scan(tile, in[i]),
            cg::reduce(equally_odd, in[i], cg::plus<int>())};
}

/// Three stages of a pipeline of the block.
__global__ void sum_stages(const int* in, int* out) {
  constexpr int kStages = 3;
  __shared__ int stages[kStages][kThreads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  const auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int used = 0, fetched = 0; used < kCount / kThreads; ++used) {
    for (; fetched < kCount / kThreads && fetched < used + kStages; ++fetched) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, stages[fetched % kStages], in + kThreads * fetched, sizeof(int) * kThreads, pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += stages[used % kStages][(threadIdx.x + 1) % kThreads];
    pipeline.consumer_release();
  }
  out[threadIdx.x] = sum;
}

/// The last block adds up what all left.
__global__ void sum_by_last_block(Counter* arrived, int* words, int* out) {
  __shared__ bool is_last;
  words[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<int>(blockIdx.x + threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) is_last = arrived->fetch_add(1, cuda::memory_order_acq_rel) == static_cast<int>(gridDim.x) - 1;
  __syncthreads();
  if (!is_last) return;
  int sum = 0;
  for (unsigned block = 0; block < gridDim.x; ++block) sum += words[block * blockDim.x + threadIdx.x];
  out[threadIdx.x] = sum;
}

__global__ void make_lock(Lock* lock) { new (lock) Lock(1); }

__global__ void sum_under_a_lock(Lock* lock, int* sum) {
  if (threadIdx.x != 0) return;
  lock->acquire();
  *sum += static_cast<int>(blockIdx.x);
  lock->release();
}

}  // namespace

int main() {
  const std::vector<int> values = numbers(kCount, 0, 9);
  Array<int> in(values), staged(kThreads), words(8 * 64), by_last(64), locked(std::vector<int>{0});
  Array<int3> tiles(kCount);
  Array<Counter> arrived(1);
  Array<Lock> lock(1);
  check(cudaMemset(arrived.data(), 0, sizeof(Counter)));
  sum_tiles<<<kCount / kThreads, kThreads>>>(in.data(), tiles.data());
  sum_stages<<<1, kThreads>>>(in.data(), staged.data());
  sum_by_last_block<<<8, 64>>>(arrived.data(), words.data(), by_last.data());
  make_lock<<<1, 1>>>(lock.data());
  sum_under_a_lock<<<20, 64>>>(lock.data(), locked.data());
  check(cudaDeviceSynchronize());

  bool is_right = locked.values()[0] == 190;
  const std::vector<int3> found = tiles.values();
  for (int i = 0; i < kCount; ++i) {
    int3 expected{};
    for (int j = i / kTile * kTile; j < i / kTile * kTile + kTile; ++j) {
      expected.x += values[j];
      if (j <= i) expected.y += values[j];
      if ((values[j] & 1) == (values[i] & 1)) expected.z += values[j];
    }
    is_right &= found[i].x == expected.x && found[i].y == expected.y && found[i].z == expected.z;
  }
  for (int i = 0; i < kThreads; ++i) {
    int sum = 0;
    for (int j = (i + 1) % kThreads; j < kCount; j += kThreads) sum += values[j];
    is_right &= staged.values()[i] == sum;
  }
  for (int i = 0; i < 64; ++i) is_right &= by_last.values()[i] == 28 + 8 * i;
  return verdict(is_right);
}
