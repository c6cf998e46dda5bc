// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/runtime/stream.h"

/// Kernels that do nothing but use one building block of kernels/lib each.
namespace gradring::tests {
inline namespace GRADRING_KERNEL_COPY {

/// Block `b` of 64 threads: sums[3 * b + j] = the sum of column j over rows 64 * b ... of values, a [64 * blocks, 3]
/// matrix.
void add_blocks(kernels::Stream& stream, const float* values, float* sums, unsigned blocks);
/// One block of 256 threads: the sum of 256 numbers.
void add_block(kernels::Stream& stream, const std::int32_t* values, std::int32_t* sum);

struct Shape {
  unsigned blocks, warps, lanes;
};
/// Adds 1 to every element of visits, a [rows, cols] matrix, with row_range and lane_range.
void visit_matrix(kernels::Stream& stream, const Shape& shape, std::int64_t rows, int cols, std::int32_t* visits);
/// The same with the launch that rows_for suggests.
void visit_matrix(kernels::Stream& stream, std::int64_t rows, int cols, std::int32_t* visits);

/// sums[j] = sum_i (x[i, j] + factor[i] * x[i, j]) for the `width` <= 16 columns of x, a [rows, width] matrix: Strip.
void add_strip(kernels::Stream& stream, const float* x, const float* factors, int rows, int width, float* sums);

/// dots[r] = x . w[r] for the `rows` <= 4 rows of w, each `length` long: Dots.
void multiply_dots(kernels::Stream& stream, const float* x, const float* w, int rows, int length, float* dots);

/// quotients[i] and remainders[i] of dividends[i] and `divisor`: Divisor.
void divide(kernels::Stream& stream, int divisor, const int* dividends, std::size_t count, int* quotients,
            int* remainders);

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::tests
