// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/simt/kernels.h"

#include "kernels/simt/simt.h"

namespace gradring::simt_test {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr std::size_t kPatterns = 65536;

__global__ void convert_half_kernel(const __half* narrow, float* wide, __half* again) {
  for (std::size_t i : simt::grid_range(kPatterns)) {
    wide[i] = __half2float(narrow[i]);
    again[i] = __float2half(wide[i]);
  }
}

__global__ void convert_bfloat16_kernel(const __nv_bfloat16* narrow, float* wide, __nv_bfloat16* again) {
  for (std::size_t i : simt::grid_range(kPatterns)) {
    wide[i] = __bfloat162float(narrow[i]);
    again[i] = __float2bfloat16(wide[i]);
  }
}

__global__ void round_all_kernel(const float* wide, __half* narrow, __nv_bfloat16* brain, std::size_t count) {
  for (std::size_t i : simt::grid_range(count)) {
    narrow[i] = __float2half_rn(wide[i]);
    brain[i] = __float2bfloat16_rn(wide[i]);
  }
}

__global__ void half_arithmetic_kernel(float a, float b, float* results) {
  const __half x = __float2half(a);
  const __half y = __float2half(b);
  results[0] = __half2float(__hadd(x, y));
  results[1] = __half2float(__hsub(x, y));
  results[2] = __half2float(__hmul(x, y));
  results[3] = __half2float(__hdiv(x, y));
  results[4] = __half2float(__hfma(x, y, x));
  results[5] = __half2float(__hmax(x, y));
  const __half2 pair = __hmul2(__floats2half2_rn(a, b), __halves2half2(y, x));
  results[6] = __low2float(pair);
  results[7] = __half22float2(pair).y;
}

__global__ void exercise_atomics_kernel(AtomicResults* results) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(&results->added, 2);
  atomicSub(&results->subtracted, 1);
  atomicMin(&results->least, thread);
  atomicMax(&results->greatest, thread);
  atomicOr(&results->bits_or, 1 << thread % 8);
  atomicXor(&results->bits_xor, thread);
  atomicAnd(&results->bits_and, ~(1u << thread % 8));
  atomicInc(&results->wrapped, 9u);
  atomicAdd(&results->wide, 1ull << 32);
  atomicAdd(&results->sum, 0.5f);
  atomicAdd(&results->precise, 0.25);
  atomicAdd(reinterpret_cast<__half2*>(results->half_sum), __floats2half2_rn(0.25f, 1.0f));
  atomicAdd(reinterpret_cast<__nv_bfloat162*>(results->brain_sum), __floats2bfloat162_rn(0.5f, 1.0f));
  atomicCAS(&results->swapped_in, 0, thread + 1);
  if (threadIdx.x == 0) {
    while (atomicCAS(&results->lock, 0, 1) != 0) {
    }
    __threadfence();  // what the last holder wrote is seen
    results->lock_protected += 1;
    __threadfence();  // and what this one wrote, by the next
    atomicExch(&results->lock, 0);
  }
}

__global__ void sum_by_last_block_kernel(const float* x, float* partial, unsigned* finished, float* total) {
  SIMT_SHARED(bool, is_last);
  SIMT_SHARED(float, sum);
  if (threadIdx.x == 0) sum = 0.0f;
  __syncthreads();  // the sum starts at zero
  atomicAdd(&sum, x[blockIdx.x * blockDim.x + threadIdx.x]);
  __syncthreads();  // all have added
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();  // the partial sum is visible before the count says so
    is_last = atomicInc(finished, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();  // all know whether theirs is the last block
  if (!is_last || threadIdx.x != 0) return;
  __threadfence();  // the other blocks' partial sums are visible from here on
  *total = 0.0f;
  for (unsigned i = 0; i < gridDim.x; ++i) *total += partial[i];
}

__global__ void exercise_scalars_kernel(float x, double* results) {
  const double list[kScalarResults] = {
      __expf(x),
      __logf(x),
      rsqrtf(x),
      __fdividef(1.0f, x),
      __saturatef(x),
      __fmaf_rn(x, x, 1.0f),
      static_cast<double>(__popc(0xf0f0u)),
      static_cast<double>(__clz(1)),
      static_cast<double>(__ffs(8)),
      static_cast<double>(__brev(1u)),
      static_cast<double>(__umulhi(0x80000000u, 6u)),
      static_cast<double>(__float2int_rn(2.5f)),
      static_cast<double>(__float2int_rz(-2.7f)),
      static_cast<double>(__float_as_int(1.0f)),
      __int_as_float(0x40000000),
      max(x, NAN),
      min(NAN, x),
      static_cast<double>(max(-1, 2)),
      static_cast<double>(min(3u, 2u)),
      static_cast<double>(__popcll(~0ull)),
      static_cast<double>(__funnelshift_l(0x80000000u, 1u, 1u)),
      static_cast<double>(isfinite(INFINITY)),
  };
  for (int i = 0; i < kScalarResults; ++i) results[i] = list[i];
}

}  // namespace

void convert(Stream& stream, const Half* narrow, float* wide, Half* again) {
  simt::launch_flat<convert_half_kernel>(stream, simt::grid_for(stream, kPatterns),
                                         reinterpret_cast<const __half*>(narrow), wide,
                                         reinterpret_cast<__half*>(again));
}

void convert(Stream& stream, const BFloat16* narrow, float* wide, BFloat16* again) {
  simt::launch_flat<convert_bfloat16_kernel>(stream, simt::grid_for(stream, kPatterns),
                                             reinterpret_cast<const __nv_bfloat16*>(narrow), wide,
                                             reinterpret_cast<__nv_bfloat16*>(again));
}

void round_all(Stream& stream, const float* wide, Half* narrow, BFloat16* brain, std::size_t count) {
  simt::launch_flat<round_all_kernel>(stream, simt::grid_for(stream, count), wide, reinterpret_cast<__half*>(narrow),
                                      reinterpret_cast<__nv_bfloat16*>(brain), count);
}

void half_arithmetic(Stream& stream, float a, float b, float* results) {
  simt::launch_flat<half_arithmetic_kernel>(stream, {}, a, b, results);
}

void exercise_atomics(Stream& stream, unsigned blocks, unsigned threads, AtomicResults* results) {
  simt::launch<exercise_atomics_kernel>(stream, {.grid = blocks, .block = threads}, results);
}

void sum_by_last_block(Stream& stream, unsigned blocks, const float* x, float* partial, unsigned* finished,
                       float* total) {
  simt::launch<sum_by_last_block_kernel>(stream, {.grid = blocks, .block = 64}, x, partial, finished, total);
}

void exercise_scalars(Stream& stream, float x, double* results) {
  simt::launch_flat<exercise_scalars_kernel>(stream, {}, x, results);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simt_test
