// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/simt/warp_kernels.h"

#include "kernels/simt/simt.h"

namespace gradring::simt_test {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr unsigned kFullMask = 0xffffffffu;

__global__ void exercise_warps_kernel(WarpResults* results) {
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int mixed = (thread - 16) * (thread % 2 == 0 ? 1 : -1);
  WarpResults mine;
  mine.broadcast = __shfl_sync(kFullMask, thread, 3);
  mine.rotated = __shfl_sync(kFullMask, thread, lane + 1, 8);
  mine.butterfly = __shfl_xor_sync(kFullMask, thread, 5);
  mine.from_above = __shfl_down_sync(kFullMask, thread, 4, 16);
  mine.from_below = __shfl_up_sync(kFullMask, thread, 2);
  mine.wide = __shfl_xor_sync(kFullMask, thread + 0.25, 1);
  mine.odd_lanes = __ballot_sync(kFullMask, thread % 2);
  mine.any_is_7 = __any_sync(kFullMask, thread == 7) != 0;
  mine.all_below_64 = __all_sync(kFullMask, thread < 64) != 0;
  mine.equal_quarter = __match_any_sync(kFullMask, lane / 8);
  mine.sum = __reduce_add_sync(kFullMask, mixed);
  mine.least = __reduce_min_sync(kFullMask, mixed);
  mine.greatest = __reduce_max_sync(kFullMask, mixed);
  mine.bits_and = __reduce_and_sync(kFullMask, static_cast<unsigned>(thread) | 0x100u);
  mine.bits_or = __reduce_or_sync(kFullMask, static_cast<unsigned>(thread));
  mine.bits_xor = __reduce_xor_sync(kFullMask, static_cast<unsigned>(thread) * 3);
  results[thread] = mine;
}

__global__ void sum_halves_kernel(std::int32_t* out) {
  const unsigned half = threadIdx.x / 16;
  const unsigned mask = half == 0 ? 0x0000ffffu : 0xffff0000u;
  int value = static_cast<int>(threadIdx.x);
  for (unsigned round = 0; round <= half; ++round) __syncwarp(mask);  // the halves need not keep step
  for (int distance = 8; distance > 0; distance /= 2) value += __shfl_xor_sync(mask, value, distance);
  out[threadIdx.x] = value;
}

__global__ void sum_with_syncwarp_kernel(const float* x, float* total) {
  SIMT_SHARED(float[32], partial);
  const unsigned lane = threadIdx.x;
  partial[lane] = x[lane];
  __syncwarp();  // every lane's value is there
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    if (lane < distance) partial[lane] += partial[lane + distance];
    __syncwarp();  // the next round reads what this one wrote
  }
  if (lane == 0) *total = partial[0];
}

__global__ void ballot_in_short_warp_kernel(std::uint32_t* ballot) {
  const std::uint32_t lanes = __ballot_sync(kFullMask, 1);
  if (threadIdx.x == 0) *ballot = lanes;
}

}  // namespace

void exercise_warps(Stream& stream, unsigned threads, WarpResults* results) {
  simt::launch<exercise_warps_kernel>(stream, {.block = threads}, results);
}

void sum_halves(Stream& stream, std::int32_t* out) { simt::launch<sum_halves_kernel>(stream, {.block = 32}, out); }

void sum_with_syncwarp(Stream& stream, const float* x, float* total) {
  simt::launch<sum_with_syncwarp_kernel>(stream, {.block = 32}, x, total);
}

void ballot_in_short_warp(Stream& stream, unsigned threads, std::uint32_t* ballot) {
  simt::launch<ballot_in_short_warp_kernel>(stream, {.block = threads}, ballot);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simt_test
