// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/support/values.h"

namespace gradring::tests {

/// Small multiples of an eighth, in a row-major matrix: all their products and sums are exact.
inline TypedArray eighths(kernels::DType dtype, std::size_t elements, std::uint64_t seed) {
  std::vector<double> values = random_values(elements, seed, -4, 5);
  for (double& value : values) value = static_cast<int>(value) / 8.0;
  return TypedArray(dtype, values);
}

/// start + a b, where a is [rows, 16] and b [16, columns]; at(i, j) of a and b.
template <class A, class B>
std::vector<double> product(std::size_t rows, std::size_t columns, double start, A a_at, B b_at) {
  std::vector<double> c(rows * columns, start);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      for (std::size_t i = 0; i < 16; ++i) c[row * columns + column] += a_at(row, i) * b_at(i, column);
  return c;
}

}  // namespace gradring::tests
