// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/half_pairs.h"
#include "kernels/lib/reference.h"
#include "kernels/ops/conv2d/patches.cuh"
#include "kernels/ops/conv_relu_pool/short_filters.h"

/// The matrix product of a convolution with few weights a filter, whose outputs are pooled 2 x 2. The inputs under a
/// window are a square of kernel + 1, the same for its four elements: that is a row of the product, of K numbers; a
/// column is an element of the window and a filter, whose weights are where that element sees them, and 0 elsewhere:
///
///   z[window, (element, filter)] = sum over k of patch[window, k] * weights[k, (element, filter)]
///   g[k, (element, filter)] = sum over windows of patch[window, k] * dz[window, (element, filter)]
///
/// For 3 x 3 weights K is 16: as much as tensor cores multiply at once, of which 9 are not 0.
namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

inline constexpr int kTileWindows = 16;   // of a warp
inline constexpr int kBlockFilters = 32;  // in groups of eight, whose elements are four fragments
inline constexpr int kFilterGroups = kBlockFilters / 8;
inline constexpr int kElements = 4;  // of a window

/// The inputs under a window, numbered row by row.
template <class Filter>
struct Patch {
  static constexpr int kSide = Filter::kKernel + 1;
  static constexpr int kRow = kSide * Filter::kInputs;  // even: neighbours are a pair
  static constexpr int kInputs = kSide * kRow;
  static constexpr int kSteps = (kInputs + 15) / 16;  // of K = 16
  static_assert(kRow % 2 == 0);

  /// Where in the image input k is, from the first on. Of those that fill up the last step: the first.
  __device__ static int offset(int k, int row_of_image) { return k < kInputs ? k / kRow * row_of_image + k % kRow : 0; }
  /// Which weight element `element` of the window multiplies input k by; -1: none.
  __device__ static int weight(int k, int element) {
    const int row = k / kRow - element / 2;
    const int column = k % kRow - element % 2 * Filter::kInputs;
    const bool exists = k < kInputs && row >= 0 && row < Filter::kKernel && column >= 0 && column < Filter::kRow;
    return exists ? row * Filter::kRow + column : -1;
  }
};

/// The windows of a batch.
struct WindowGrid {
  struct Position {
    int image, y, x;  // of a window's first input
  };

  int windows;
  conv2d::Divisor windows_of_image, windows_of_line;
  int height, width, padding;

  explicit WindowGrid(const Geometry& g)
      : windows(lib::narrow<int>("conv_relu_pool", "positions", g.out_positions())),
        windows_of_image(lib::narrow<int>("conv_relu_pool", "positions", g.out_height() * g.out_width())),
        windows_of_line(static_cast<int>(g.out_width())),
        height(lib::narrow<int>("conv_relu_pool", "in_height", g.conv.in_height)),
        width(lib::narrow<int>("conv_relu_pool", "in_width", g.conv.in_width)),
        padding(static_cast<int>(g.conv.padding)) {}

  int tiles() const { return (windows + kTileWindows - 1) / kTileWindows; }
  __device__ Position position(int window) const {
    const auto [image, rest] = windows_of_image.divide(window);
    const auto [line, column] = windows_of_line.divide(rest);
    return {image, 2 * line - padding, 2 * column - padding};
  }
};

/// Images of element type X, as kernels read them that compute in T.
template <class T, class X>
struct StoredImages {
  using Element = X;

  const X* data;
  int elements;  // of an image

  __device__ const X* image(int index) const { return data + std::int64_t{index} * elements; }
  __device__ static X element(const X* at) { return *at; }
  /// The two elements at an address that is a multiple of theirs.
  __device__ static std::uint32_t pair(const X* at) {
    if constexpr (sizeof(X) == sizeof(T)) return simt::load_as<std::uint32_t>(at);
    const auto both = simt::load_as<float2>(at);
    return lib::pair_of<T>(both.x, both.y);
  }
};

/// An input of a patch that may lie in the padding.
template <class Filter, class Images>
__device__ typename Images::Element padded_element(const Images& images, const typename Images::Element* image,
                                                   const WindowGrid& grid, const WindowGrid::Position& at, int k) {
  using P = Patch<Filter>;
  const int y = at.y + k / P::kRow;
  const int x = at.x + k % P::kRow / Filter::kInputs;
  const bool exists = k < P::kInputs && y >= 0 && y < grid.height && x >= 0 && x < grid.width;
  if (!exists) return static_cast<typename Images::Element>(0.0f);
  return images.element(image + (y * grid.width + x) * Filter::kInputs + k % Filter::kInputs);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
