// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/runtime/half.h"
#include "kernels/runtime/stream.h"

namespace gradring::simt_test {
inline namespace GRADRING_KERNEL_COPY {

using kernels::BFloat16;
using kernels::Half;
using kernels::Stream;

/// wide[i] = float(narrow[i]); again[i] = narrow(wide[i]); for all 65,536 patterns.
void convert(Stream& stream, const Half* narrow, float* wide, Half* again);
void convert(Stream& stream, const BFloat16* narrow, float* wide, BFloat16* again);
/// narrow[i] = narrow(wide[i])
void round_all(Stream& stream, const float* wide, Half* narrow, BFloat16* brain, std::size_t count);

/// Arithmetic of a and b in half precision: sum, difference, product, quotient, fused a b + a, maximum; and of pairs.
constexpr int kHalfResults = 8;
void half_arithmetic(Stream& stream, float a, float b, float* results);

/// What `threads` x `blocks` atomic operations leave behind.
struct AtomicResults {
  std::int32_t added = 0, least = 1 << 30, greatest = 0, bits_or = 0, bits_xor = 0, swapped_in = 0, subtracted = 0;
  std::uint32_t bits_and = ~0u, wrapped = 0;
  unsigned long long wide = 0;
  float sum = 0.0f;
  double precise = 0.0;
  alignas(4) Half half_sum[2] = {};
  alignas(4) BFloat16 brain_sum[2] = {};
  std::int32_t lock = 0;            ///< made of atomicCAS and atomicExch
  std::int32_t lock_protected = 0;  ///< counted by each block's first thread, which holds the lock
};
void exercise_atomics(Stream& stream, unsigned blocks, unsigned threads, AtomicResults* results);

/// The last block to finish, found by atomicInc and __threadfence, sums what all blocks left.
void sum_by_last_block(Stream& stream, unsigned blocks, const float* x, float* partial, unsigned* finished,
                       float* total);

/// Scalar functions, one result each, of fixed arguments; see number_test.cpp.
constexpr int kScalarResults = 22;
void exercise_scalars(Stream& stream, float x, double* results);

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simt_test
