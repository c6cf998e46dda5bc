// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lib/half_pairs.h"
#include "kernels/lib/reference.h"
#include "kernels/lib/split_k.h"
#include "kernels/ops/conv2d/patches.cuh"
#include "kernels/ops/conv2d/short_filters.h"

/// What the kernels for filters of few weights share, also those of conv_relu_pool: windows of outputs, images, and
/// their rows in shared memory. Strides are 1.
namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// Windows of kDown x kAcross outputs: those that are pooled, pairs of neighbours, or single positions.
template <int kDownExtent, int kAcrossExtent>
struct WindowGrid {
  static constexpr int kDown = kDownExtent, kAcross = kAcrossExtent;
  struct Position {
    int image, y, x;  // of a window's first input
  };

  int windows;                                               // of the batch
  Divisor windows_of_image, windows_of_line, rows_of_image;  // rows with their padding
  int height, width, padding;

  /// Of `lines` x `columns` windows an image.
  WindowGrid(const Geometry& g, std::int64_t lines, std::int64_t columns)
      : windows(lib::narrow<int>("conv2d", "windows", g.batch * lines * columns)),
        windows_of_image(lib::narrow<int>("conv2d", "windows", lines * columns)),
        windows_of_line(static_cast<int>(columns)),
        rows_of_image(lib::narrow<int>("conv2d", "rows", g.in_height + 2 * g.padding)),
        height(lib::narrow<int>("conv2d", "in_height", g.in_height)),
        width(lib::narrow<int>("conv2d", "in_width", g.in_width)),
        padding(static_cast<int>(g.padding)) {}

  __device__ Position position(int window) const {
    const auto [image, rest] = windows_of_image.divide(window);
    const auto [line, column] = windows_of_line.divide(rest);
    return {image, kDown * line - padding, kAcross * column - padding};
  }
  /// Of a window's first input, among the rows of all images.
  __device__ int row(const Position& at) const { return at.image * rows_of_image.value() + at.y + padding; }
};

inline constexpr std::size_t kMostSharedBytes = 96 << 10;

/// Whether indices of windows, positions and rows are below 2^31, with room for those of a block beyond the last.
inline bool has_short_indices(const Geometry& g) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  return g.stride == 1 && g.batch * g.out_height() * (g.out_width() + 1) <= kMost &&
         g.batch * (g.in_height + 2 * g.padding) <= kMost;
}

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

/// How rows of images are staged.
template <class Grid>
struct StagedShape {
  Grid grid;
  Divisor vectors_of_row;  // of four inputs, with padding
  int pitch;               // of a staged row, in words
  bool in_vectors;         // no padding, and each vector is one aligned access
};

/// The rows of images under some windows, with their padding, in shared memory: for each input the pair of it and the
/// one kDistance further, so that a register of tensor cores is one word of it. The last word of a row is no input.
template <class Filter, class Grid, int kDistance>
struct StagedRows {
  static constexpr int kRowsOfWindow = Filter::kKernel + Grid::kDown - 1;

  std::uint32_t* words;  // [row][pitch]
  int pitch;
  int first_row;  // of all rows of all images

  static std::int64_t vectors_of_row(const Geometry& g) {
    return lib::ceil_div((g.in_width + 2 * g.padding) * Filter::kInputs, 4);
  }
  /// The distance of rows in words: those that a fragment sees in different rows of the kernel are in different banks.
  static std::int64_t pitch_of(const Geometry& g) {
    return lib::ceil_div(4 * vectors_of_row(g) + 1 - 12, 32) * 32 + 12;
  }
  /// For so many windows, of `lines` x `columns` in an image.
  static std::int64_t words_of(const Geometry& g, std::int64_t windows, std::int64_t lines, std::int64_t columns) {
    if (lines == 0 || columns == 0) return kRowsOfWindow * pitch_of(g);
    const std::int64_t crossed = lib::ceil_div(windows - 1, columns);  // ends of lines
    const std::int64_t unused = g.in_height + 2 * g.padding - Grid::kDown * lines;
    return (Grid::kDown * crossed + lib::ceil_div(crossed, lines) * unused + kRowsOfWindow) * pitch_of(g);
  }
  static StagedShape<Grid> shape(const Geometry& g, std::int64_t lines, std::int64_t columns, const void* x,
                                 std::size_t bytes_of_input) {
    return {.grid = Grid(g, lines, columns),
            .vectors_of_row = Divisor(static_cast<int>(vectors_of_row(g))),
            .pitch = static_cast<int>(pitch_of(g)),
            .in_vectors = g.padding == 0 && g.in_width * Filter::kInputs % 4 == 0 &&
                          reinterpret_cast<std::uintptr_t>(x) % (4 * bytes_of_input) == 0};
  }

  __device__ int last_word() const { return pitch - 1; }
  /// Where the first input of a window is, in bytes.
  __device__ unsigned byte(const Grid& grid, const typename Grid::Position& at) const {
    const int word = (grid.row(at) - first_row) * pitch + (at.x + grid.padding) * Filter::kInputs;
    return static_cast<unsigned>(word) * static_cast<unsigned>(sizeof(std::uint32_t));
  }

  /// Up to row `last_row`, by a block of kThreads. A thread takes four neighbouring inputs; those between rows belong to
  /// no pair that is used.
  template <class T, int kThreads, class Images>
  __device__ void load(const Images& images, const StagedShape<Grid>& s, int last_row) const {
    using Element = typename Images::Element;
    const int elements = s.grid.width * Filter::kInputs, margin = s.grid.padding * Filter::kInputs;
    const int vectors = (last_row + 1 - first_row) * s.vectors_of_row.value();
    for (int i = static_cast<int>(threadIdx.x); i < vectors; i += kThreads) {
      const auto [row, vector] = s.vectors_of_row.divide(i);
      const auto [index, line] = s.grid.rows_of_image.divide(first_row + row);
      const auto* const image = images.image(index);
      Element inputs[4 + kDistance];
      if (s.in_vectors) {
        const auto* const from = image + line * elements + 4 * vector;
        images.load_four(inputs, from);
        const bool last = vector == s.vectors_of_row.value() - 1;
        SIMT_UNROLL_ON_GPU
        for (int j = 4; j < 4 + kDistance; ++j) inputs[j] = images.element(last ? from : from + j);
      } else {
        const int y = line - s.grid.padding;
        SIMT_UNROLL_ON_GPU
        for (int j = 0; j < 4 + kDistance; ++j) {
          const int x = 4 * vector + j - margin;
          const bool exists = y >= 0 && y < s.grid.height && x >= 0 && x < elements;
          inputs[j] = exists ? images.element(image + y * elements + x) : static_cast<Element>(0.0f);
        }
      }
      std::uint32_t pairs[4];
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < 4; ++j) pairs[j] = lib::pair_of<T>(inputs[j], inputs[j + kDistance]);
      simt::store_as(words + row * s.pitch + 4 * vector, uint4{pairs[0], pairs[1], pairs[2], pairs[3]});
    }
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
