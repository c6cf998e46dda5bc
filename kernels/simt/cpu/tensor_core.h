// SPDX-License-Identifier: Apache-2.0
// What kernels/lib/tensor_core.h means on the CPU. Instrumented code: every lane reads from shared memory what it gets
// itself, so that TSan sees a row that another thread wrote without a barrier.
#pragma once

#include <cstdint>

#include "kernels/simt/cpu/warp_functions.h"
#include "kernels/simt/engine/cooperation.h"
#include "kernels/simt/mma_layout.h"

namespace gradring::simt::detail {

/// ldmatrix: `Count` matrices of 8 rows of 8 words of 16 bits; lane 8 i + r knows the address of row r of matrix i.
template <int Count>
void load_matrices(const char* what, std::uint32_t (&registers)[Count], const void* row, bool transpose, Site site) {
  const int lane = lane_id();
  const auto address = reinterpret_cast<std::uintptr_t>(row);
  if (lane < 8 * Count && address % 16 != 0)
    fail_kernel(site, "the address of a row of ldmatrix is not a multiple of 16 bytes");
  std::uint64_t rows[32];
  warp_gather(what, address, rows, site);
  const auto word = [&](int matrix, int row_of_matrix, int column) -> std::uint32_t {
    return reinterpret_cast<const std::uint16_t*>(rows[8 * matrix + row_of_matrix])[column];
  };
  const int outer = lane / 4, inner = lane % 4 * 2;
  for (int i = 0; i < Count; ++i)
    registers[i] = transpose ? word(i, inner, outer) | word(i, inner + 1, outer) << 16
                             : word(i, outer, inner) | word(i, outer, inner + 1) << 16;
}

/// mma.sync.m16n8k16 with inputs of type T: c += a b. The last lane to arrive multiplies for all.
template <class T>
void multiply_fragments(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1, Site site) {
  const auto half_of = [](std::uint32_t pair, int which) -> float {
    return T::from_bits(static_cast<std::uint16_t>(pair >> (16 * which)));
  };
  float as[8], bs[4];
  for (int i = 0; i < 8; ++i) as[i] = half_of(a[i / 2], i % 2);
  for (int i = 0; i < 4; ++i) bs[i] = half_of(i < 2 ? b0 : b1, i % 2);
  MatrixMultiply part{Fragments::mma, 16, 8, 16, as, bs, c};
  warp_matrix_multiply("mma.m16n8k16", part, site);
}

}  // namespace gradring::simt::detail
