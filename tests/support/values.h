// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/runtime/dtype.h"

namespace gradring::tests {

/// An array as a kernel sees it, in its type and exactly as long as it must be, so that ASan sees a step past its end.
class TypedArray {
 public:
  TypedArray(kernels::DType dtype, std::span<const double> values);
  /// All elements are NaN (integers: -1), so that what a kernel forgets to write shows.
  static TypedArray unwritten(kernels::DType dtype, std::size_t elements);

  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }
  template <class T>
  T* as() {
    return static_cast<T*>(data());
  }
  kernels::DType dtype() const { return dtype_; }
  std::size_t elements() const { return bytes_.size() / size_of(dtype_); }
  /// What a reader of the array sees: rounded to its type.
  std::vector<double> values() const;

 private:
  kernels::DType dtype_;
  std::vector<std::byte> bytes_;
};

/// Numbers in [low, high), the same for the same seed on every machine.
std::vector<double> random_values(std::size_t elements, std::uint64_t seed, double low = -1, double high = 1);

/// Numbers of which no two are equal and none is 0: a shuffle of the odd multiples of `step`, positive and negative.
std::vector<double> distinct_values(std::size_t elements, std::uint64_t seed, double step);

/// What storing `value` in a type may cost: half a unit in the last place.
double rounding(kernels::DType dtype, double value);

}  // namespace gradring::tests
