// SPDX-License-Identifier: Apache-2.0
// The line that an error must name carries a comment "planted: name"; the test looks it up.
#include "kernels/simt/simt.h"
#include "tests/kernels/simt/planted/harness.h"
#include "tests/kernels/simt/planted/planted.h"

namespace gradring::simt_test {
namespace {

constexpr unsigned kFullMask = 0xffffffffu;

/// An element of y for each thread of the grid, so that no kernel has a race besides its mistake.
__device__ unsigned self() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void divergent_barrier(float* y) {
  if (threadIdx.x < 16) {
    __syncthreads();  // planted: divergent_barrier
    y[self()] = 1.0f;
  } else {
    __syncthreads();  // planted: divergent_barrier
    y[self()] = 2.0f;
  }
}

__global__ void barrier_after_exit(float* y) {
  if (threadIdx.x == 7) return;
  __syncthreads();  // planted: barrier_after_exit
  y[self()] = 1.0f;
}

__global__ void unequal_trip_counts(float* y) {
  for (unsigned i = 0; i < 2 + threadIdx.x / 16; ++i) {
    __syncthreads();  // planted: unequal_trip_counts
  }
  y[self()] = 1.0f;
}

__global__ void shuffle_from_exited(float* y) {
  if (threadIdx.x >= 16) return;
  y[self()] = __shfl_down_sync(kFullMask, 1.0f, 1);  // planted: shuffle_from_exited
}

__global__ void shuffle_from_unnamed(float* y) {
  if (threadIdx.x >= 16) return;
  y[self()] = __shfl_xor_sync(0xffffu, 1.0f, 16);  // planted: shuffle_from_unnamed
}

__global__ void shuffle_from_missing(float* y) {
  y[self()] = __shfl_sync(kFullMask, 1.0f, 31);  // planted: shuffle_from_missing
}

__global__ void shuffle_meets_barrier(float* y) {
  if (threadIdx.x < 16) {
    y[self()] = __shfl_xor_sync(kFullMask, 1.0f, 1);  // planted: shuffle_meets_barrier
  } else {
    __syncthreads();  // planted: shuffle_meets_barrier
  }
}

__global__ void unequal_masks(float* y) {
  const unsigned mask = threadIdx.x < 16 ? 0xffffu : kFullMask;
  y[self()] = __shfl_xor_sync(mask, 1.0f, 1);  // planted: unequal_masks
}

__global__ void mask_without_itself(float* y) {
  y[self()] = __shfl_xor_sync(0xffffu, 1.0f, 1);  // planted: mask_without_itself
}

__global__ void unequal_operations(float* y) {
  if (threadIdx.x % 2 == 0) {
    __syncwarp();  // planted: unequal_operations
  } else {
    y[self()] = static_cast<float>(__ballot_sync(kFullMask, 1));  // planted: unequal_operations
  }
}

__global__ void barrier_in_flat_launch(float* y) {
  __syncthreads();  // planted: barrier_in_flat_launch
  y[self()] = 1.0f;
}

__global__ void ballot_in_flat_launch(float* y) {
  y[self()] = static_cast<float>(__ballot_sync(1u, 1));  // planted: ballot_in_flat_launch
}

__global__ void partial_warp_multiply(float* y) {
  namespace wmma = nvcuda::wmma;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(a, __float2half(1.0f));
  wmma::fill_fragment(b, __float2half(1.0f));
  wmma::fill_fragment(c, 0.0f);
  wmma::mma_sync(c, a, b, c);  // planted: partial_warp_multiply
  y[self()] = c.x[0];
}

/// More locals than a thread's stack holds.
__global__ void stack_overflow(float* y) {
  volatile float locals[80000];
  locals[threadIdx.x] = 1.0f;
  __syncthreads();  // planted: stack_overflow
  y[self()] = locals[threadIdx.x];
}

template <auto Kernel, unsigned Threads>
bool run(kernels::Device& device) {
  Bench bench(device);
  simt::launch<Kernel>(bench.stream(), {.grid = 3, .block = Threads}, bench.y());
  return true;
}

template <auto Kernel>
bool run_flat(kernels::Device& device) {
  Bench bench(device);
  simt::launch_flat<Kernel>(bench.stream(), {.block = 32}, bench.y());
  return true;
}

const Planted kDivergence[] = {
    {"divergent_barrier", &run<divergent_barrier, 32>},
    {"barrier_after_exit", &run<barrier_after_exit, 32>},
    {"unequal_trip_counts", &run<unequal_trip_counts, 32>},
    {"shuffle_from_exited", &run<shuffle_from_exited, 32>},
    {"shuffle_from_unnamed", &run<shuffle_from_unnamed, 32>},
    {"shuffle_from_missing", &run<shuffle_from_missing, 20>},
    {"shuffle_meets_barrier", &run<shuffle_meets_barrier, 32>},
    {"unequal_masks", &run<unequal_masks, 32>},
    {"mask_without_itself", &run<mask_without_itself, 32>},
    {"unequal_operations", &run<unequal_operations, 32>},
    {"barrier_in_flat_launch", &run_flat<barrier_in_flat_launch>},
    {"ballot_in_flat_launch", &run_flat<ballot_in_flat_launch>},
    {"partial_warp_multiply", &run<partial_warp_multiply, 16>},
    {"stack_overflow", &run<stack_overflow, 32>},
};

}  // namespace

std::span<const Planted> planted_divergence() { return kDivergence; }

}  // namespace gradring::simt_test
