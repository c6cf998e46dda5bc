// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/runtime/dtype.h"

namespace gradring::comm::bench {

/// Test data whose sums over ranks can be checked with ==: small integers, different at every rank and element. Every
/// partial sum is exact in every dtype and in any order, for up to 256 ranks.
///
/// Types     f32, f16, bf16, i32, i64.
/// Source    nccl-tests, verifiable/.
struct ExactSums {
  int world_size = 1;

  /// Writes the contribution of `rank` to array[i], for i in [0, elements).
  void fill(std::byte* array, std::size_t elements, kernels::DType dtype, int rank) const;
  /// The number of elements that differ from the sum of all ranks' contributions.
  std::size_t count_wrong(const std::byte* array, std::size_t elements, kernels::DType dtype) const;

  int contribution(int rank, std::size_t element) const;
  int sum(std::size_t element) const;
};

}  // namespace gradring::comm::bench
