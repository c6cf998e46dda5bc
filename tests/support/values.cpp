// SPDX-License-Identifier: Apache-2.0
#include "tests/support/values.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/lib/reference.h"
#include "kernels/runtime/philox.h"

namespace gradring::tests {

using kernels::DType;

TypedArray::TypedArray(DType dtype, std::span<const double> values)
    : dtype_(dtype), bytes_(values.size() * size_of(dtype)) {
  kernels::lib::write_values(dtype, bytes_.data(), values);
}

TypedArray TypedArray::unwritten(DType dtype, std::size_t elements) {
  TypedArray array(dtype, {});
  array.bytes_.assign(elements * size_of(dtype), std::byte{0xff});
  array.bytes_.shrink_to_fit();
  return array;
}

std::vector<double> TypedArray::values() const { return kernels::lib::read_values(dtype_, data(), elements()); }

std::vector<double> random_values(std::size_t elements, std::uint64_t seed, double low, double high) {
  std::vector<double> values(elements);
  for (std::size_t i = 0; i < elements; ++i)
    values[i] = low + (high - low) * kernels::uniform_from(kernels::philox(seed, i)[0]);
  return values;
}

std::vector<double> distinct_values(std::size_t elements, std::uint64_t seed, double step) {
  std::vector<double> values(elements);
  const std::size_t even = elements / 2 * 2;
  for (std::size_t i = 0; i < elements; ++i)
    values[i] = (2 * static_cast<double>(i) + 1 - static_cast<double>(even)) * step;
  for (std::size_t i = elements; i > 1; --i) std::swap(values[i - 1], values[kernels::philox(seed, i)[0] % i]);
  return values;
}

double rounding(DType dtype, double value) {
  switch (dtype) {
    case DType::f32: return std::max(std::fabs(value) * 0x1p-24, 0x1p-150);
    case DType::f16: return std::max(std::fabs(value) * 0x1p-11, 0x1p-25);
    case DType::bf16: return std::max(std::fabs(value) * 0x1p-8, 0x1p-134);
    default: return 0;
  }
}

}  // namespace gradring::tests
