// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/runtime/dtype.h"
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

/// As kernels/lib/split_k.h, whose header is for kernels.
void sum_slices(kernels::Stream& stream, float* slices, int count, std::int64_t elements, float* to, bool accumulate);
int slices_of(std::int64_t k_tiles, std::int64_t wanted, std::int64_t min_k_tiles);

/// Kernels of one warp that do nothing but use kernels/lib/tensor_core.h.

/// What one load put into registers: registers[lane * 4 + i]. `words` are laid into shared memory, 8 a row, and
/// lane l points at row rows[l], `skew` bytes further.
///
/// Errors    as ldmatrix; without `everybody` lane 31 stays away.
struct MatrixLoad {
  bool transpose = false;
  const std::uint16_t* words = nullptr;
  int row_count = 0;  ///< at most 64
  const std::int32_t* rows = nullptr;
  std::uint32_t* registers = nullptr;
  int skew = 0;
  bool everybody = true;
};
void load_matrices(kernels::Stream& stream, const MatrixLoad& load);

/// Lane l writes number 31 - l into all words of a row, and after a barrier all rows are loaded as four matrices.
void load_what_others_wrote(kernels::Stream& stream, std::uint32_t* registers);

/// c += a b on one tile of 16 x 8 x 16 by mma_m16n8k16, each lane taking the elements that simt/engine/tensor_layout.h
/// gives it straight from a [16, 16], b [16, 8] and c [16, 8], row-major.
void multiply_places(kernels::Stream& stream, kernels::DType dtype, const void* a, const void* b, float* c);

/// How the operands of a product are stored.
struct Stored {
  bool a_by_inner = false;   ///< a [inner][row], else [row][inner]
  bool b_by_column = false;  ///< b [column][inner], else [inner][column]
};
/// c = a b for a [16, 16] and b [16, 16] through shared memory, ldmatrix and two tiles of b.
void multiply_loaded(kernels::Stream& stream, kernels::DType dtype, Stored stored, const void* a, const void* b,
                     float* c);

/// Kernels of one block that do nothing but use kernels/lib/bulk_tensor.h, barrier_pipe.h and warpgroup_mma.h.

/// A [rows, columns] matrix of 16-bit words, of which the box of 64 x 64 at (row, column) is copied to shared memory.
/// words[i]: what lies there then, in the order of addresses. The address is `skew` bytes past a multiple of 1,024, and
/// the barrier expects `expected_bytes`.
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

/// Brings a [64 * rounds, 64] matrix of words to shared memory by boxes, through a pipe of two stages, and two warps
/// bring it back to `to`.
void copy_through_pipe(kernels::Stream& stream, const std::uint16_t* from, int rounds, std::uint16_t* to,
                       PipeFault fault = PipeFault::none);

/// How an operand is stored, and where: pieces of a row in patterns of 8 rows, patterns `stride` apart, and where a row
/// is longer than a pattern's, `leading` apart. In units of 1,024 bytes. Without a swizzle: cores, in units of 128
/// bytes.
struct OperandStorage {
  bool transposed = false;
  int leading = 0, stride = 1;
  bool swizzled = true;
};
enum class ProductFault : std::uint8_t { none, no_fence, no_wait, off_the_pattern, outside, half_a_group };

/// c = a b for a [64, 16] and b [16, 128], row-major, by one warpgroup: the operands are laid into shared memory as the
/// storages say, and each thread takes its sums to where simt::warpgroup_position_in_d says.
void multiply_by_warpgroup(kernels::Stream& stream, kernels::DType dtype, OperandStorage a_storage,
                           OperandStorage b_storage, const void* a, const void* b, float* c,
                           ProductFault fault = ProductFault::none);

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::tests
