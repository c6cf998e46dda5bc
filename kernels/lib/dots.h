// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/lanes.h"

namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Dot products of one vector with kRows others, added up piece by piece in registers. Lane l of a row's sums takes the
/// products at l, l + 8, ..., so that the additions do not wait for each other; what is left at the end is added up apart.
template <int kRows>
class Dots {
 public:
  /// Adds x . row r over `length` elements; row r starts at w + r * stride and is contiguous, as is x. Rows from `rows` on
  /// are not read (the last one is, in their place), and their sums mean nothing.
  template <class T>
  __device__ void add(const T* __restrict__ x, const T* __restrict__ w, std::int64_t stride, int rows, int length) {
    int at = 0;
    for (; at + kLanes <= length; at += kLanes) {
      const Lanes x_lanes = load_lanes(x + at);
      SIMT_UNROLL
      for (int r = 0; r < kRows; ++r)
        add_product(sums_[r], x_lanes, load_lanes(w + (r < rows ? r : rows - 1) * stride + at));
    }
    for (; at < length; ++at) {
      const float value = to_f32(x[at]);
      SIMT_UNROLL
      for (int r = 0; r < kRows; ++r) rest_[r] += value * to_f32(w[(r < rows ? r : rows - 1) * stride + at]);
    }
  }

  /// Calls visit(r, sum of row r) for every r below `rows`.
  template <class Visit>
  __device__ void for_each(int rows, Visit visit) const {
    SIMT_UNROLL
    for (int r = 0; r < kRows; ++r)
      if (r < rows) visit(r, sum_of(sums_[r]) + rest_[r]);
  }

 private:
  Lanes sums_[kRows] = {};
  float rest_[kRows] = {};
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
