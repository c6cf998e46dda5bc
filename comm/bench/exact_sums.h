// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/runtime/dtype.h"

namespace gradring::comm::bench {

/// Numbers whose sums over ranks can be checked with ==: small whole ones, different at every rank and element, so
/// small that every partial sum is exact in every type, in whatever order. Up to 256 ranks; bf16 holds whole numbers to
/// 256, the others further.
///
/// Types     all that have sums: f32, f16, bf16, i32, i64.
/// Source    the idea: nccl-tests, verifiable/.
struct ExactSums {
  int world_size = 1;

  /// What `rank` contributes: array[i], for i in [0, elements).
  void fill(std::byte* array, std::size_t elements, kernels::DType dtype, int rank) const;
  /// How many elements are not the sum of what all ranks contributed.
  std::size_t count_wrong(const std::byte* array, std::size_t elements, kernels::DType dtype) const;

  int contribution(int rank, std::size_t element) const;
  int sum(std::size_t element) const;
};

}  // namespace gradring::comm::bench
