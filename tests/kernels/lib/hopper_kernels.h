// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"

/// Kernels of one block that do nothing but use kernels/lib/bulk_tensor.h, barrier_pipe.h and warpgroup_mma.h.
namespace gradring::tests {
inline namespace GRADRING_KERNEL_COPY {

/// A [rows, columns] matrix of 16-bit words, of which the box of 64 x 64 at (row, column) is copied to shared memory.
/// words[i]: what lies there then, in the order of addresses. The place is `skew` bytes past a multiple of 1,024, and the
/// barrier expects `expected_bytes`.
struct BoxLoad {
  const std::uint16_t* matrix = nullptr;
  std::int64_t rows = 0, columns = 0;
  int row = 0, column = 0;
  std::uint16_t* words = nullptr;
  unsigned expected_bytes = 64 * 64 * 2;
  unsigned skew = 0;
};
void load_box(kernels::Stream& stream, const BoxLoad& load);

/// What goes wrong in a pipe, if anything.
enum class PipeFault : std::uint8_t { none, never_released, filled_twice, not_initialised, initialised_twice };

/// Brings a [64 * rounds, 64] matrix of words to shared memory by boxes, through a pipe of two stages, and two warps bring it
/// back to `to`.
void copy_through_pipe(kernels::Stream& stream, const std::uint16_t* from, int rounds, std::uint16_t* to,
                       PipeFault fault = PipeFault::none);

/// How an operand is stored, and where: pieces of a row in patterns of 8 rows, patterns `stride` apart, and where a row is
/// longer than a pattern's, `leading` apart. In units of 1,024 bytes.
struct OperandStorage {
  bool transposed = false;
  int leading = 0, stride = 1;
};
enum class ProductFault : std::uint8_t { none, no_fence, no_wait, off_the_pattern, outside, half_a_group };

/// c = a b for a [64, 16] and b [16, 128], row-major, by one warpgroup: the operands are laid into shared memory as the
/// storages say, and each thread takes its sums to where simt::warpgroup_place_in_d says.
void multiply_by_warpgroup(kernels::Stream& stream, kernels::DType dtype, OperandStorage a_storage,
                           OperandStorage b_storage, const void* a, const void* b, float* c,
                           ProductFault fault = ProductFault::none);

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::tests
