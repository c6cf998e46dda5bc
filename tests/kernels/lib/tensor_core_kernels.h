// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/runtime/dtype.h"
#include "kernels/runtime/stream.h"

/// Kernels of one warp that do nothing but use kernels/lib/tensor_core.h.
namespace gradring::tests {
inline namespace GRADRING_KERNEL_COPY {

/// What one load put into registers: registers[lane * matrices + i]. `words` are laid into shared memory, 8 a row, and
/// lane l points at row rows[l], `skew` bytes further.
///
/// Errors    as ldmatrix; without `everybody` lane 31 stays away.
struct MatrixLoad {
  int matrices = 4;  ///< 2 or 4
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

/// c += a b on one tile of 16 x 8 x 16 by mma_m16n8k16, each lane taking the elements that simt/mma_layout.h gives it
/// straight from a [16, 16], b [16, 8] and c [16, 8], row-major.
void multiply_places(kernels::Stream& stream, kernels::DType dtype, const void* a, const void* b, float* c);

/// How the operands of a product are stored.
struct Stored {
  bool a_by_inner = false;   ///< a [inner][row], else [row][inner]
  bool b_by_column = false;  ///< b [column][inner], else [inner][column]
};
/// c = a b for a [16, 16] and b [16, 16] through shared memory, ldmatrix and two tiles of b.
void multiply_loaded(kernels::Stream& stream, kernels::DType dtype, Stored stored, const void* a, const void* b,
                     float* c);

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::tests
