// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace gradring::simulated_gpu {

/// A layout as CUTLASS writes it, Layout<Shape<...>, Stride<...>> with its modes flattened: an index is taken apart by
/// the sizes, the first fastest, and the digits are multiplied by the strides. So layouts of CUTLASS's headers can be
/// copied here as they stand.
class CuteLayout {
 public:
  CuteLayout(std::vector<int> sizes, std::vector<int> strides)
      : sizes_(std::move(sizes)), strides_(std::move(strides)) {}

  int size() const { return std::accumulate(sizes_.begin(), sizes_.end(), 1, std::multiplies<>()); }
  int operator()(int index) const {
    int offset = 0;
    for (std::size_t mode = 0; mode < sizes_.size(); ++mode) {
      offset += index % sizes_[mode] * strides_[mode];
      index /= sizes_[mode];
    }
    return offset;
  }

 private:
  std::vector<int> sizes_;
  std::vector<int> strides_;
};

/// Swizzle<B, M, S> of CUTLASS's include/cute/swizzle.hpp, S > 0: bits [M, M + B) ^= bits [M + S, M + S + B).
inline int cute_swizzle(int bits, int base, int shift, int offset) {
  const int mask = ((1 << bits) - 1) << (base + shift);
  return offset ^ (offset & mask) >> shift;
}

}  // namespace gradring::simulated_gpu
