// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/strided_view.h"

#include <algorithm>
#include <cstring>

namespace gradring::train {
namespace {

/// Adds b * c to a; returns false if the sum exceeds `most`.
bool add_product(std::uint64_t& a, std::uint64_t b, std::uint64_t c, std::uint64_t most) {
  std::uint64_t product = 0;
  return !__builtin_mul_overflow(b, c, &product) && !__builtin_add_overflow(a, product, &a) && a <= most;
}

}  // namespace

bool StridedView::lies_in(std::uint64_t storage_elements) const {
  const auto negative = [](std::int64_t value) { return value < 0; };
  if (strides.size() != shape.size() || offset < 0 || std::ranges::any_of(shape, negative) ||
      std::ranges::any_of(strides, negative))
    return false;
  if (std::ranges::count(shape, 0) > 0) return true;
  auto last = static_cast<std::uint64_t>(offset);
  if (last >= storage_elements) return false;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (!add_product(last, static_cast<std::uint64_t>(shape[axis] - 1), static_cast<std::uint64_t>(strides[axis]),
                     storage_elements - 1))
      return false;
  return true;
}

std::vector<std::byte> StridedView::make_dense(std::span<const std::byte> storage, std::size_t element_bytes) const {
  std::size_t elements = 1;
  for (std::int64_t extent : shape) elements *= static_cast<std::size_t>(extent);
  std::vector<std::byte> dense(elements * element_bytes);
  if (elements == 0) return dense;
  if (strides == dense_strides(shape)) {
    std::memcpy(dense.data(), storage.data() + static_cast<std::size_t>(offset) * element_bytes, dense.size());
    return dense;
  }
  std::vector<std::int64_t> index(shape.size(), 0);
  auto at = static_cast<std::uint64_t>(offset);  // modulo 2^64: the stride of an extent of 1 can be anything
  for (std::size_t i = 0; i < elements; ++i) {
    std::memcpy(dense.data() + i * element_bytes, storage.data() + at * element_bytes, element_bytes);
    for (std::size_t axis = index.size(); axis-- > 0;) {  // increments the index
      const auto stride = static_cast<std::uint64_t>(strides[axis]);
      at += stride;
      if (++index[axis] < shape[axis]) break;
      at -= stride * static_cast<std::uint64_t>(index[axis]);
      index[axis] = 0;
    }
  }
  return dense;
}

std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * std::max<std::int64_t>(shape[axis], 1);
  return strides;
}

std::vector<std::int64_t> column_major_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t axis = 1; axis < shape.size(); ++axis)
    strides[axis] = strides[axis - 1] * std::max<std::int64_t>(shape[axis - 1], 1);
  return strides;
}

}  // namespace gradring::train
