// SPDX-License-Identifier: Apache-2.0
// Host functions around the kernels of kernels.cu: one for each thing that a kernel may do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"

namespace gradring::simt_test {
inline namespace GRADRING_KERNEL_COPY {

using kernels::Stream;

// Indices and shapes.
struct Extents {
  unsigned x, y, z;
};
/// index[linear] = linear, with linear computed from blockIdx and threadIdx in all three dimensions.
void index_threads(Stream& stream, Extents grid, Extents block, std::int32_t* index, bool flat);
/// visits[i] += 1 for each i that grid_range hands out.
void count_visits(Stream& stream, unsigned blocks, unsigned threads, std::int32_t* visits, std::size_t count);
void count_visits_by_default(Stream& stream, std::int32_t* visits, std::size_t count);
/// Each block visits [begin, end) through block_range.
void count_block_visits(Stream& stream, unsigned blocks, unsigned threads, std::int32_t* visits, unsigned begin,
                        unsigned end);

// Elementwise.
/// y[i] = a x[i] + y[i], four elements at a time; count is a multiple of 4, addresses of 16.
void axpy_wide(Stream& stream, float a, const float* x, float* y, std::size_t count);
struct Polynomial {
  float coefficients[64];
  int degree;
};
/// y[i] = p(x[i]): a parameter too big to copy.
void evaluate(Stream& stream, const Polynomial& polynomial, const float* x, float* y, std::size_t count);

// Shared memory and barriers.
void transpose(Stream& stream, const float* from, float* to, unsigned rows, unsigned columns);
/// Reverses each block's piece of `threads` elements, through static (raw __shared__) or dynamic shared memory.
void reverse_pieces(Stream& stream, float* values, unsigned blocks, unsigned threads, bool dynamic);
/// sum += x[0] + ... : grid_range, shuffles, shared memory, barriers, atomicAdd.
void sum(Stream& stream, unsigned blocks, unsigned threads, const float* x, std::size_t count, float* sum);
/// out[0..2] = how many threads hold an odd value, whether all do, whether any does.
void block_votes(Stream& stream, unsigned threads, const std::int32_t* values, std::int32_t* out);
/// Every thread writes dynamic shared memory from both ends of `bytes`.
void touch_dynamic_shared(Stream& stream, std::size_t bytes, std::int32_t* ok);

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

using kernels::BFloat16;
using kernels::Half;
using kernels::Stream;

enum class Layout { row_major, col_major };

/// c = a b + c on one tile of m x n x 16, (m, n) being (16, 16), (32, 8) or (8, 32), by one warp. Leading dimensions
/// are those of dense matrices; addresses are multiples of 32.
void multiply_tile(Stream& stream, int m, int n, Layout a_layout, Layout b_layout, const Half* a, const Half* b,
                   float* c);
/// The same for bfloat16 and 16 x 16, with c in half and both layouts row-major.
void multiply_brain_tile(Stream& stream, const BFloat16* a, const BFloat16* b, float* c);
void multiply_half_tile(Stream& stream, const Half* a, const Half* b, Half* c);

/// y[t] = sum over tiles k of the first float of quad 63 - t in tile k. Tiles of 64 quads are copied asynchronously
/// into two buffers in turn. Without `wait` the kernel reads them too early.
void staged_sum(Stream& stream, const float* quads, float* y, int tiles, bool wait);

using kernels::Stream;

/// What each thread of one block gets from the warp functions when it gives its number in the block.
struct WarpResults {
  std::int32_t broadcast;             ///< __shfl_sync from lane 3
  std::int32_t rotated;               ///< __shfl_sync from the next lane, width 8
  std::int32_t butterfly;             ///< __shfl_xor_sync with 5
  std::int32_t from_above;            ///< __shfl_down_sync by 4, width 16
  std::int32_t from_below;            ///< __shfl_up_sync by 2
  double wide;                        ///< __shfl_xor_sync of a double with 1
  std::uint32_t odd_lanes;            ///< __ballot_sync
  std::int32_t any_is_7;              ///< __any_sync
  std::int32_t all_below_64;          ///< __all_sync
  std::uint32_t equal_quarter;        ///< __match_any_sync of lane / 8
  std::int32_t sum, least, greatest;  ///< __reduce_*_sync of a negative and positive mix
  std::uint32_t bits_and, bits_or, bits_xor;
};
/// threads is a multiple of 32.
void exercise_warps(Stream& stream, unsigned threads, WarpResults* results);

/// The two halves of a warp work apart, each with its own mask; out[thread] = sum over its half.
void sum_halves(Stream& stream, std::int32_t* out);

/// A reduction through shared memory within one warp, ordered by __syncwarp alone.
void sum_with_syncwarp(Stream& stream, const float* x, float* total);

/// One warp of fewer than 32 threads, named by a full mask.
void ballot_in_short_warp(Stream& stream, unsigned threads, std::uint32_t* ballot);

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simt_test
