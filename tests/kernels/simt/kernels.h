// SPDX-License-Identifier: Apache-2.0
// Host functions around the kernels of kernels.cu: one for each thing that a kernel may do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/runtime/half.h"
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

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simt_test
