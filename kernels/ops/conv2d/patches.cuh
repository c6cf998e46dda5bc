// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/reference.h"
#include "kernels/ops/conv2d/conv2d.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// Divides by a number that is known at launch: a multiplication, an addition and a shift, where a GPU, which has no
/// instruction for it, takes some twenty.
///
/// Limits      1 <= divisor < 2^31, 0 <= dividend < 2^31.
/// Numerics    exact.
/// Source      Granlund and Montgomery, Division by Invariant Integers using Multiplication, 1994.
class Divisor {
 public:
  struct Result {
    int quotient, remainder;
  };

  constexpr Divisor() : Divisor(1) {}
  /// A divisor of 0, as of an empty array, counts as 1: it is never used.
  explicit constexpr Divisor(int divisor) : divisor_(divisor < 1 ? 1 : divisor) {
    while ((std::int64_t{1} << shift_) < divisor_) ++shift_;
    const std::uint64_t excess = (std::uint64_t{1} << shift_) - static_cast<std::uint64_t>(divisor_);
    multiplier_ = static_cast<std::uint32_t>((excess << 32) / static_cast<std::uint64_t>(divisor_) + 1);
  }

  constexpr int value() const { return divisor_; }

  __device__ Result divide(int dividend) const {
    const auto n = static_cast<std::uint32_t>(dividend);
    const auto high = static_cast<std::uint32_t>(std::uint64_t{n} * multiplier_ >> 32);
    const int quotient = static_cast<int>((high + n) >> shift_);
    return {quotient, dividend - quotient * divisor_};
  }

 private:
  int divisor_;
  int shift_ = 0;
  std::uint32_t multiplier_ = 0;
};

/// The im2col matrix as a view ("implicit GEMM": it is never stored). A row is a position of the result; a column is a
/// position in the kernel and a channel; the element is the one of the source that this product takes, or nothing:
///
///   of_outputs   row (n, oh, ow), column (kh, kw, i): x[n, oh * stride + kh - padding, ow * stride + kw - padding, i]
///                y = patches * w^T, dw = dy^T * patches
///   of_inputs    row (n, ih, iw), column (kh, kw, o):
///                dy[n, (ih + padding - kh) / stride, (iw + padding - kw) / stride, o] where both divide
///                dx = patches * w, stored with rows (kh, kw, o)
///
/// Columns that differ in the channel alone are neighbours in memory.
/// Limits    rows, columns and the elements of an image with its padding below 2^31; extents, with padding, below 2^30
///           (checked).
class Patches {
 public:
  static Patches of_outputs(const Geometry& g);
  static Patches of_inputs(const Geometry& g);

  /// Of a row, where in the source the kernel's first position is; of a column, the distance from it.
  struct Row {
    int image, y, x;
  };
  struct Column {
    int y, x, channel;
  };
  /// Of an element of the source; y is negative outside of the source.
  struct Position {
    int image, y, x, channel;
  };

  constexpr int rows() const { return rows_; }
  constexpr int columns() const { return columns_; }

  /// A row without elements; a row or a column beyond the last one is such.
  __device__ Row row(int index) const {
    if (index >= rows_) return {0, kOutside, kOutside};
    const auto [line, across] = grid_width_.divide(index);
    const auto [image, down] = grid_height_.divide(line);
    return {image, down * step_ + origin_, across * step_ + origin_};
  }
  __device__ Column column(int index) const {
    if (index >= columns_) return {kOutside, kOutside, 0};
    const auto [kernel_position, channel] = channels_.divide(index);
    const auto [down, across] = kernel_width_.divide(kernel_position);
    return {down * direction_, across * direction_, channel};
  }
  /// Where source coordinates are multiples of the stride, which dgrad has to divide by; else they need no division.
  __device__ bool dilated() const { return dilation_ > 1; }
  __device__ bool contains(int y, int x) const {
    return static_cast<unsigned>(y) < static_cast<unsigned>(source_height_) &&
           static_cast<unsigned>(x) < static_cast<unsigned>(source_width_);
  }
  __device__ Position position(const Row& row, const Column& column) const {
    constexpr Position kNone{0, -1, -1, 0};
    int y = row.y + column.y;
    int x = row.x + column.x;
    if (dilated()) {
      if (y < 0 || x < 0) return kNone;
      const auto down = dilation_divisor_.divide(y);
      const auto across = dilation_divisor_.divide(x);
      if (down.remainder || across.remainder) return kNone;
      y = down.quotient;
      x = across.quotient;
    }
    return contains(y, x) ? Position{row.image, y, x, column.channel} : kNone;
  }
  __device__ std::int64_t image_offset(int image) const { return std::int64_t{image} * image_elements_; }
  /// Of channel 0 at (y, x) from the start of an image. Outside of it any number, or so far before or behind it.
  __device__ int offset_in_image(int y, int x) const {
    return static_cast<int>(
        (static_cast<unsigned>(y) * static_cast<unsigned>(source_width_) + static_cast<unsigned>(x)) *
        static_cast<unsigned>(source_channels_));
  }

 private:
  /// Added to any coordinate, it stays negative, and twice it is still an int.
  static constexpr int kOutside = -(1 << 30);

  struct Shape {
    std::int64_t grid_height, grid_width, source_height, source_width, channels;
    int origin, step, direction;
    int dilation;  ///< of the source, by zeros
  };
  Patches(const Geometry& g, const Shape& shape);

  int rows_, columns_;
  Divisor grid_height_, grid_width_, kernel_width_, channels_, dilation_divisor_;
  int origin_, step_, direction_, dilation_;
  int source_height_, source_width_, source_channels_, image_elements_;
};

inline Patches::Patches(const Geometry& g, const Shape& shape)
    : rows_(lib::narrow<int>("conv2d", "positions", g.batch * shape.grid_height * shape.grid_width)),
      columns_(lib::narrow<int>("conv2d", "products of a sum", g.kernel_height * g.kernel_width * shape.channels)),
      grid_height_(static_cast<int>(shape.grid_height)),
      grid_width_(static_cast<int>(shape.grid_width)),
      kernel_width_(static_cast<int>(g.kernel_width)),
      channels_(static_cast<int>(shape.channels)),
      dilation_divisor_(shape.dilation),
      origin_(shape.origin),
      step_(shape.step),
      direction_(shape.direction),
      dilation_(shape.dilation),
      source_height_(static_cast<int>(shape.source_height)),
      source_width_(static_cast<int>(shape.source_width)),
      source_channels_(static_cast<int>(shape.channels)),
      image_elements_(lib::narrow<int>("conv2d", "elements of an image",
                                       shape.source_height * shape.source_width * shape.channels)) {
  constexpr std::int64_t kMost = 1 << 30;
  lib::check_limit("conv2d", "height + 2 * padding", g.in_height + 2 * g.padding, kMost);
  lib::check_limit("conv2d", "width + 2 * padding", g.in_width + 2 * g.padding, kMost);
  lib::check_limit("conv2d", "kernel_height", g.kernel_height, kMost);
  lib::check_limit("conv2d", "kernel_width", g.kernel_width, kMost);
  lib::check_limit("conv2d", "stride", g.stride, kMost);
  lib::narrow<int>("conv2d", "elements of a padded image",
                   (g.in_height + 2 * g.padding) * (g.in_width + 2 * g.padding) * shape.channels);
}

inline Patches Patches::of_outputs(const Geometry& g) {
  return {g,
          {.grid_height = g.out_height(),
           .grid_width = g.out_width(),
           .source_height = g.in_height,
           .source_width = g.in_width,
           .channels = g.in_channels,
           .origin = -static_cast<int>(g.padding),
           .step = static_cast<int>(g.stride),
           .direction = 1,
           .dilation = 1}};
}

inline Patches Patches::of_inputs(const Geometry& g) {
  return {g,
          {.grid_height = g.in_height,
           .grid_width = g.in_width,
           .source_height = g.out_height(),
           .source_width = g.out_width(),
           .channels = g.out_channels,
           .origin = static_cast<int>(g.padding),
           .step = 1,
           .direction = -1,
           .dilation = static_cast<int>(g.stride)}};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
