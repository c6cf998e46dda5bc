// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/runtime/half.h"
#include "kernels/runtime/stream.h"

namespace gradring::simt_test {
inline namespace GRADRING_KERNEL_COPY {

using kernels::BFloat16;
using kernels::Half;
using kernels::Stream;

enum class Layout { row_major, col_major };

/// c = a b + c on one tile of m x n x 16, (m, n) being (16, 16), (32, 8) or (8, 32), by one warp. Leading dimensions are those
/// of dense matrices; addresses are multiples of 32.
void multiply_tile(Stream& stream, int m, int n, Layout a_layout, Layout b_layout, const Half* a, const Half* b,
                   float* c);
/// The same for bfloat16 and 16 x 16, with c in half and both layouts row-major.
void multiply_brain_tile(Stream& stream, const BFloat16* a, const BFloat16* b, float* c);
void multiply_half_tile(Stream& stream, const Half* a, const Half* b, Half* c);

/// y[t] = sum over tiles k of the first float of quad 63 - t in tile k. Tiles of 64 quads are copied asynchronously into two
/// buffers in turn. Without `wait` the kernel reads them too early.
void staged_sum(Stream& stream, const float* quads, float* y, int tiles, bool wait);

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simt_test
