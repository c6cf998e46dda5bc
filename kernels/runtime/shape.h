// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace gradring::kernels {

/// Extents of a dense, row-major tensor: at most six, none negative. The empty shape is a scalar with one element.
class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  /// Errors    InvalidArgument if there are more than kMaxRank extents, one is negative, or their product overflows.
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const;
  std::int64_t elements() const;
  std::span<const std::int64_t> extents() const { return {extents_.data(), static_cast<std::size_t>(rank_)}; }

  /// This shape with its first extent replaced: the same tensor for another batch size.
  Shape with_batch(std::int64_t batch) const;

  /// "[64, 28, 28, 1]"
  std::string to_string() const;

  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

}  // namespace gradring::kernels
