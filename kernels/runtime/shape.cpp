// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/shape.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace gradring::kernels {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  check(extents.size() <= kMaxRank,
        [&] { return "a shape has " + std::to_string(extents.size()) + " extents, expected at most 6"; });
  std::int64_t product = 1;
  for (std::int64_t extent : extents) {
    check(extent >= 0, [&] { return "a shape has the extent " + std::to_string(extent) + ", expected 0 or more"; });
    check(!__builtin_mul_overflow(product, std::max<std::int64_t>(extent, 1), &product),
          "a shape has too many elements: expected fewer than 2^63");
  }
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

std::int64_t Shape::operator[](int axis) const {
  check(axis >= 0 && axis < rank_,
        [&] { return "axis " + std::to_string(axis) + " is outside a shape of rank " + std::to_string(rank_); });
  return extents_[static_cast<std::size_t>(axis)];
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (std::int64_t extent : extents()) product *= extent;
  return product;
}

Shape Shape::with_batch(std::int64_t batch) const {
  check(rank_ > 0 && batch >= 0, [&] {
    return "batch size " + std::to_string(batch) + " does not fit shape " + to_string() +
           ": expected 0 or more, and a first extent";
  });
  Shape other = *this;
  other.extents_[0] = batch;
  return other;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int axis = 0; axis < rank_; ++axis) text += (axis ? ", " : "") + std::to_string((*this)[axis]);
  return text + "]";
}

}  // namespace gradring::kernels
