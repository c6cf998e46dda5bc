// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/lanes.h"

namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Sums of kWidth neighbouring columns that one thread keeps in registers: each factor it loads then serves all of them, and
/// what it multiplies with them lies contiguous. The last strip of a row may be narrower: `width` <= kWidth.
template <int kWidth>
class Strip {
 public:
  static_assert(kWidth % kLanes == 0);

  /// sums[j] += row[j]
  template <class T>
  __device__ void add(const T* row, int width) {
    SIMT_UNROLL
    for (int p = 0; p < kParts; ++p)
      if (p * kLanes < width) lib::add(parts_[p], load_lanes(row + p * kLanes, width - p * kLanes));
  }

  /// sums[j] += factor * row[j]
  template <class T>
  __device__ void add_product(float factor, const T* row, int width) {
    SIMT_UNROLL
    for (int p = 0; p < kParts; ++p)
      if (p * kLanes < width) lib::add_product(parts_[p], factor, load_lanes(row + p * kLanes, width - p * kLanes));
  }

  __device__ void copy_to(float* sums) const {
    for (int j = 0; j < kWidth; ++j) sums[j] = parts_[j / kLanes][j % kLanes];
  }

  /// Calls visit(j, sums[j]) for every j below `width`.
  template <class Visit>
  __device__ void for_each(int width, Visit visit) const {
    SIMT_UNROLL
    for (int p = 0; p < kParts; ++p)
      for (int l = 0; l < kLanes; ++l)
        if (p * kLanes + l < width) visit(p * kLanes + l, parts_[p][l]);
  }

 private:
  static constexpr int kParts = kWidth / kLanes;
  Lanes parts_[kParts] = {};
};

/// How many strips of a width cover `columns`.
constexpr int strips(std::int64_t columns, int width) { return static_cast<int>((columns + width - 1) / width); }

/// The width of strip number `strip`: `width`, but less for the last one.
__device__ inline int strip_width(std::int64_t columns, std::int64_t strip, int width) {
  const std::int64_t left = columns - strip * width;
  return left < width ? static_cast<int>(left) : width;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
