// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/element.h"

namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Dot products of one vector with kRows others, summed up piece by piece in registers: lane l of row r adds up the products
/// at positions l, l + kLanes, ... so that sums do not wait for each other, and so that the lanes are a vector on a CPU.
template <int kRows, int kLanes = 8>
class Dots {
 public:
  /// Adds x . w[r] over `length` elements, element i of x at x[i * x_step], of row r at w[r * w_stride + i]. Rows from
  /// `rows` on are not read (the last one is, in their place), and their sums mean nothing.
  template <class T>
  __device__ void add(const T* __restrict__ x, std::int64_t x_step, const T* __restrict__ w, std::int64_t w_stride,
                      int rows, int length) {
    int at = 0;
    for (; at + kLanes <= length; at += kLanes) {
      float piece[kLanes];
      for (int l = 0; l < kLanes; ++l) piece[l] = to_f32(x[(at + l) * x_step]);
      SIMT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const T* row = w + (r < rows ? r : rows - 1) * w_stride + at;
        for (int l = 0; l < kLanes; ++l) sums_[r][l] += piece[l] * to_f32(row[l]);
      }
    }
    for (; at < length; ++at) {
      const float value = to_f32(x[at * x_step]);
      SIMT_UNROLL
      for (int r = 0; r < kRows; ++r) sums_[r][0] += value * to_f32(w[(r < rows ? r : rows - 1) * w_stride + at]);
    }
  }

  __device__ float sum(int row) const {
    float total = 0;
    for (int l = 0; l < kLanes; ++l) total += sums_[row][l];
    return total;
  }

 private:
  float sums_[kRows][kLanes] = {};
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
