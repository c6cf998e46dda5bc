// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernels/lib/async_copy.h"
#include "kernels/lib/tensor_core.h"
#include "kernels/simt/simt.h"
#include "tests/kernels/simt/planted/harness.h"
#include "tests/kernels/simt/planted/planted.h"

namespace gradring::simt_test {
namespace {

constexpr unsigned kFullMask = 0xffffffffu;

template <bool Barrier, int Distance>
__global__ void read_neighbour(const float* x, float* y) {
  SIMT_SHARED(float[256], values);
  const unsigned t = threadIdx.x;
  values[t] = x[t];
  if (Barrier) __syncthreads();  // the neighbour has written
  y[t] = values[(t + 256 + Distance) % 256];
}

template <bool SecondBarrier>
__global__ void reuse_tile(const float* x, float* y) {
  __shared__ float tile[256];
  const unsigned t = threadIdx.x;
  float sum = 0.0f;
  for (int round = 0; round < 4; ++round) {
    tile[t] = x[t] + static_cast<float>(round);
    __syncthreads();  // the tile is complete
    sum += tile[(t + 37) % 256];
    if (SecondBarrier) __syncthreads();  // nobody still reads it
  }
  y[t] = sum;
}

template <bool Syncwarp>
__global__ void sum_warp(const float* x, float* y) {
  SIMT_SHARED(float[32], partial);
  const unsigned lane = threadIdx.x;
  partial[lane] = x[lane];
  if (Syncwarp) __syncwarp();  // all lanes have written
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    if (lane < distance) partial[lane] += partial[lane + distance];
    if (Syncwarp) __syncwarp();  // the next round reads what this one wrote
  }
  if (lane == 0) *y = partial[0];
}

/// A shuffle makes the lanes meet, but orders no memory.
__global__ void shuffle_as_fence(const float* x, float* y) {
  SIMT_SHARED(float[32], values);
  const unsigned lane = threadIdx.x;
  values[lane] = x[lane];
  const float zero = __shfl_xor_sync(kFullMask, 0.0f, 1);
  y[lane] = values[lane ^ 1] + zero;
}

/// So does ldmatrix. Lane l writes the row that lane 31 - l points at.
template <bool Syncwarp>
__global__ void load_matrices(const float* x, float* y) {
  SIMT_SHARED(float[32][4], rows);
  const unsigned lane = threadIdx.x;
  for (float& number : rows[31 - lane]) number = x[lane];
  if (Syncwarp) __syncwarp();  // all rows are there
  std::uint32_t registers[4];
  kernels::lib::ldmatrix_x4(registers, rows[lane]);
  std::memcpy(&y[lane], &registers[3], sizeof(float));
}

template <bool Atomic>
__global__ void count(float* y) {
  if (Atomic)
    atomicAdd(y, 1.0f);
  else
    *y += 1.0f;
}

template <bool Atomic>
__global__ void count_blocks(float* y) {
  if (threadIdx.x != 0) return;
  if (Atomic)
    atomicAdd(y, 1.0f);
  else
    *y += 1.0f;
}

/// Two threads share each element.
__global__ void overlap(const float* x, float* y) {
  const unsigned t = threadIdx.x;
  y[t / 2] = x[t / 2];
}

template <bool Barrier>
__global__ void async_copy(const float* x, float* y) {
  SIMT_SHARED(float4[64], stage);
  const unsigned t = threadIdx.x;
  kernels::async_copy16(&stage[t], x + 4 * t);
  kernels::async_commit();
  kernels::async_wait<0>();
  if (Barrier) __syncthreads();  // the wait is for this thread's copies alone
  y[t] = stage[(t + 1) % 64].x;
}

/// Dynamic shared memory starts as it was left.
template <bool Initialise>
__global__ void uninitialised(float* y) {
  SIMT_DYNAMIC_SHARED(float, values);
  if (Initialise || threadIdx.x != 0) values[threadIdx.x] = 1.0f;
  __syncthreads();  // all have written
  y[threadIdx.x] = values[threadIdx.x];
}

template <bool Barrier, int Distance>
bool run_neighbour(kernels::Device& device) {
  Bench bench(device);
  simt::launch<read_neighbour<Barrier, Distance>>(bench.stream(), {.block = 256}, bench.x(), bench.y());
  return bench.holds(256, [](std::size_t i) { return static_cast<float>((i + 256 + Distance) % 256 + 1); });
}

template <bool SecondBarrier>
bool run_reuse(kernels::Device& device) {
  Bench bench(device);
  simt::launch<reuse_tile<SecondBarrier>>(bench.stream(), {.block = 256}, bench.x(), bench.y());
  return bench.holds(256, [](std::size_t i) { return static_cast<float>(4 * ((i + 37) % 256 + 1) + 6); });
}

template <bool Syncwarp>
bool run_sum_warp(kernels::Device& device) {
  Bench bench(device);
  simt::launch<sum_warp<Syncwarp>>(bench.stream(), {.block = 32}, bench.x(), bench.y());
  return bench.holds(1, [](std::size_t) { return 528.0f; });
}

bool run_shuffle_as_fence(kernels::Device& device) {
  Bench bench(device);
  simt::launch<shuffle_as_fence>(bench.stream(), {.block = 32}, bench.x(), bench.y());
  return bench.holds(32, [](std::size_t i) { return static_cast<float>((i ^ 1) + 1); });
}

template <bool Syncwarp>
bool run_load_matrices(kernels::Device& device) {
  Bench bench(device);
  simt::launch<load_matrices<Syncwarp>>(bench.stream(), {.block = 32}, bench.x(), bench.y());
  return bench.holds(32, [](std::size_t i) {
    const std::size_t row = i / 4;
    return static_cast<float>(8 - row);
  });
}

template <bool Atomic>
bool run_count(kernels::Device& device) {
  Bench bench(device);
  simt::launch<count<Atomic>>(bench.stream(), {.grid = 1, .block = 64}, bench.y());
  return bench.holds(1, [](std::size_t) { return 64.0f; });
}

template <bool Atomic>
bool run_count_blocks(kernels::Device& device) {
  Bench bench(device);
  simt::launch<count_blocks<Atomic>>(bench.stream(), {.grid = 64, .block = 32}, bench.y());
  return bench.holds(1, [](std::size_t) { return 64.0f; });
}

bool run_overlap(kernels::Device& device) {
  Bench bench(device);
  simt::launch_flat<overlap>(bench.stream(), {.block = 64}, bench.x(), bench.y());
  return bench.holds(32, [](std::size_t i) { return static_cast<float>(i + 1); });
}

template <bool Barrier>
bool run_async_copy(kernels::Device& device) {
  Bench bench(device);
  simt::launch<async_copy<Barrier>>(bench.stream(), {.block = 64}, bench.x(), bench.y());
  return bench.holds(64, [](std::size_t i) { return static_cast<float>(4 * ((i + 1) % 64) + 1); });
}

template <bool Initialise>
bool run_uninitialised(kernels::Device& device) {
  Bench bench(device);
  simt::launch<uninitialised<Initialise>>(bench.stream(), {.block = 32, .shared_bytes = 128}, bench.y());
  return bench.holds(32, [](std::size_t) { return 1.0f; });
}

const Planted kRaces[] = {
    {"no_barrier_right_neighbour", &run_neighbour<false, 1>},
    {"no_barrier_left_neighbour", &run_neighbour<false, -1>},
    {"barrier_right_neighbour", &run_neighbour<true, 1>},
    {"barrier_left_neighbour", &run_neighbour<true, -1>},
    {"no_second_barrier", &run_reuse<false>},
    {"second_barrier", &run_reuse<true>},
    {"no_syncwarp", &run_sum_warp<false>},
    {"syncwarp", &run_sum_warp<true>},
    {"shuffle_as_fence", &run_shuffle_as_fence},
    {"ldmatrix_without_barrier", &run_load_matrices<false>},
    {"ldmatrix_with_barrier", &run_load_matrices<true>},
    {"plain_count_in_block", &run_count<false>},
    {"atomic_count_in_block", &run_count<true>},
    {"plain_count_across_blocks", &run_count_blocks<false>},
    {"atomic_count_across_blocks", &run_count_blocks<true>},
    {"overlap_in_flat_kernel", &run_overlap},
    {"async_copy_without_barrier", &run_async_copy<false>},
    {"async_copy_with_barrier", &run_async_copy<true>},
    {"uninitialised_shared", &run_uninitialised<false>},
    {"initialised_shared", &run_uninitialised<true>},
};

}  // namespace

std::span<const Planted> planted_races() { return kRaces; }

}  // namespace gradring::simt_test
