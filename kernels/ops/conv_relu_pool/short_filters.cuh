// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/half_pairs.h"
#include "kernels/lib/reference.h"
#include "kernels/ops/conv2d/patches.cuh"
#include "kernels/ops/conv_relu_pool/short_filters.h"

/// What the kernels for filters of few weights share, whose outputs are pooled 2 x 2.
namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

inline constexpr int kTileWindows = 16;  // of a warp
inline constexpr int kBlockFilters = 32;

/// The windows of a batch.
struct WindowGrid {
  struct Position {
    int image, y, x;  // of a window's first input
  };

  int windows;
  conv2d::Divisor windows_of_image, windows_of_line, rows_of_image;  // rows with their padding
  int height, width, padding;

  explicit WindowGrid(const Geometry& g)
      : windows(lib::narrow<int>("conv_relu_pool", "positions", g.out_positions())),
        windows_of_image(lib::narrow<int>("conv_relu_pool", "positions", g.out_height() * g.out_width())),
        windows_of_line(static_cast<int>(g.out_width())),
        rows_of_image(lib::narrow<int>("conv_relu_pool", "rows", g.conv.in_height + 2 * g.conv.padding)),
        height(lib::narrow<int>("conv_relu_pool", "in_height", g.conv.in_height)),
        width(lib::narrow<int>("conv_relu_pool", "in_width", g.conv.in_width)),
        padding(static_cast<int>(g.conv.padding)) {}

  int tiles() const { return (windows + kTileWindows - 1) / kTileWindows; }
  __device__ Position position(int window) const {
    const auto [image, rest] = windows_of_image.divide(window);
    const auto [line, column] = windows_of_line.divide(rest);
    return {image, 2 * line - padding, 2 * column - padding};
  }
  /// Of a window's first input, among the rows of all images.
  __device__ int row(const Position& at) const { return at.image * rows_of_image.value() + at.y + padding; }
};

/// Images of element type X, as kernels read them that compute in T.
template <class T, class X>
struct StoredImages {
  using Element = X;

  const X* data;
  int elements;  // of an image

  __device__ const X* image(int index) const { return data + std::int64_t{index} * elements; }
  __device__ static X element(const X* at) { return *at; }
  /// Four elements at an address that is a multiple of theirs.
  __device__ static void load_four(X* elements, const X* at) {
    struct alignas(4 * sizeof(X)) Vector {
      X elements[4];
    };
    const auto vector = simt::load_as<Vector>(at);
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < 4; ++i) elements[i] = vector.elements[i];
  }
  /// The two elements at an address that is a multiple of theirs.
  __device__ static std::uint32_t pair(const X* at) {
    if constexpr (sizeof(X) == sizeof(T)) return simt::load_as<std::uint32_t>(at);
    const auto both = simt::load_as<float2>(at);
    return lib::pair_of<T>(both.x, both.y);
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
