// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "kernels/lib/split_k.h"
#include "kernels/ops/conv2d/gather.cuh"
#include "kernels/ops/conv2d/products.cuh"

/// The three passes as products of gathered operands (gather.cuh), and where their results go.
namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// Rows of C as positions of a grid in images of an array; columns are its channels. Of y: all its positions; of dx
/// with a stride, every stride-th.
struct GridOfRows {
  Divisor height, width;
  std::int64_t image = 0, down = 0, across = 0;  ///< elements from a position to the next
  std::int64_t first = 0;
  bool dense = true;  ///< rows are one after the other

  __device__ std::int64_t offset(int row) const {
    if (dense) return row * across;
    const auto [line, x] = width.divide(row);
    const auto [image_index, y] = height.divide(line);
    return first + image_index * image + y * down + x * across;
  }
};

/// C = A B, or one slice of it for each blockIdx.z.
template <class A, class B>
struct GatheredProduct {
  A a;
  B b;
  GridOfRows to;
  int rows, columns, k;
};

/// Bytes that all accesses to arrays can have: 16, or those of an element.
template <class T>
int vector_bytes(const Geometry& g, std::initializer_list<const void*> arrays) {
  constexpr int kWide = 16;
  constexpr std::int64_t kElements = kWide / sizeof(T);
  const bool are_wide = std::ranges::all_of(
      arrays, [](const void* array) { return reinterpret_cast<std::uintptr_t>(array) % kWide == 0; });
  return are_wide && g.in_channels % kElements == 0 && g.out_channels % kElements == 0 ? kWide : int{sizeof(T)};
}

/// Whether there are channels, the kernel fits the masks of PatchRows, and PatchColumns has a coordinate outside.
inline bool is_gathered(const Geometry& g) {
  constexpr std::int64_t kMostOfKernel = 15;
  constexpr std::int64_t kMostOfImage = std::int64_t{1} << 28;
  return g.in_channels > 0 && g.out_channels > 0 && g.kernel_height <= kMostOfKernel &&
         g.kernel_width <= kMostOfKernel && g.in_height + 2 * g.padding < kMostOfImage &&
         g.in_width + 2 * g.padding < kMostOfImage;
}

template <class T>
PatchView<T> patches_of_x(const Geometry& g, const void* x) {
  const Patches checked = Patches::of_outputs(g);  // its limits
  return {.data = static_cast<const T*>(x),
          .rows = checked.rows(),
          .channels = static_cast<int>(g.in_channels),
          .grid_height = Divisor(static_cast<int>(g.out_height())),
          .grid_width = Divisor(static_cast<int>(g.out_width())),
          .step = static_cast<int>(g.stride),
          .origin_y = -static_cast<int>(g.padding),
          .origin_x = -static_cast<int>(g.padding),
          .height = static_cast<int>(g.in_height),
          .width = static_cast<int>(g.in_width),
          .kernel_height = static_cast<int>(g.kernel_height),
          .kernel_width = static_cast<int>(g.kernel_width)};
}

template <class T, int kVectorBytes>
auto gathered_forward(const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  const PatchRows<T, kVectorBytes> a{patches_of_x<T>(g, args.x)};
  const int filters = lib::narrow<int>("conv2d", "out_channels", g.out_channels);
  const GridOfRows to{.height = a.grid_height,
                      .width = a.grid_width,
                      .image = g.out_height() * g.out_width() * g.out_channels,
                      .down = g.out_width() * g.out_channels,
                      .across = g.out_channels,
                      .first = 0,
                      .dense = true};
  const int k = a.columns();
  return GatheredProduct<PatchRows<T, kVectorBytes>, FilterRows<T, kVectorBytes>>{
      a, {static_cast<const T*>(args.w), filters, k}, to, a.rows, filters, k};
}

template <class T, int kVectorBytes>
auto gathered_wgrad(const WgradArgs& args) {
  const Geometry& g = args.geometry;
  const PatchView<T> view = patches_of_x<T>(g, args.x);
  constexpr std::int64_t kStep = kGatheredK<T>;
  constexpr std::int64_t kBytes = sizeof(T);
  const std::int64_t width = std::max<std::int64_t>(1, g.out_width());
  const std::int64_t positions = std::max<std::int64_t>(1, width * g.out_height());
  const std::int64_t line = g.in_width * g.in_channels;
  const std::int64_t image = g.in_height * line;
  const std::int64_t lines_of_step = kStep % positions / width;
  const std::int64_t columns_of_step = kStep % positions % width;
  const auto as_int = [](std::int64_t value) { return static_cast<int>(value); };
  const PatchColumns<T, kVectorBytes> b{
      view,
      Divisor(view.channels),
      Divisor(view.kernel_width),
      {.across = as_int(columns_of_step * g.stride),
       .down = as_int(lines_of_step * g.stride),
       .row_end = as_int(g.out_width() * g.stride - g.padding),
       .row_back = as_int(g.out_width() * g.stride),
       .image_end = as_int(g.out_height() * g.stride - g.padding),
       .image_back = as_int(g.out_height() * g.stride),
       .bytes =
           (kStep / positions * image + lines_of_step * g.stride * line + columns_of_step * g.stride * g.in_channels) *
           kBytes,
       .bytes_at_row_end = (g.stride * line - g.out_width() * g.stride * g.in_channels) * kBytes,
       .bytes_at_image_end = (image - g.out_height() * g.stride * line) * kBytes}};
  const int filters = lib::narrow<int>("conv2d", "out_channels", g.out_channels);
  GridOfRows to;
  to.across = view.columns();
  return GatheredProduct<GradientColumns<T, kVectorBytes>, PatchColumns<T, kVectorBytes>>{
      {static_cast<const T*>(args.dy), filters}, b, to, filters, view.columns(), view.rows};
}

/// dgrad as products that are convolutions with stride 1: one for the inputs at each offset within a stride, each with
/// the kernel positions that see them.
template <class T, int kVectorBytes>
using DgradProduct = GatheredProduct<PatchRows<T, kVectorBytes>, FilterColumns<T, kVectorBytes>>;

/// The product of inputs (offset_y + i * stride, offset_x + j * stride).
template <class T, int kVectorBytes>
DgradProduct<T, kVectorBytes> gathered_dgrad(const DgradArgs& args, std::int64_t offset_y, std::int64_t offset_x) {
  const Geometry& g = args.geometry;
  static_cast<void>(Patches::of_inputs(g));  // its limits
  const std::int64_t s = g.stride;
  /// Of one dimension: kernel positions first + s * i for i < count see the inputs; the last one sees the earliest
  /// output, `origin` for the first input.
  struct Dimension {
    std::int64_t first, count, origin, grid;
  };
  const auto dimension = [&](std::int64_t offset, std::int64_t kernel, std::int64_t extent) {
    const std::int64_t first = (offset + g.padding) % s;
    const std::int64_t count = first < kernel ? (kernel - first + s - 1) / s : 0;
    return Dimension{first, count, (offset + g.padding - first) / s - (count - 1),
                     offset < extent ? (extent - offset + s - 1) / s : 0};
  };
  const Dimension y = dimension(offset_y, g.kernel_height, g.in_height);
  const Dimension x = dimension(offset_x, g.kernel_width, g.in_width);
  const auto as_int = [](std::int64_t value) { return static_cast<int>(value); };
  const PatchRows<T, kVectorBytes> a{{.data = static_cast<const T*>(args.dy),
                                      .rows = as_int(g.batch * y.grid * x.grid),
                                      .channels = lib::narrow<int>("conv2d", "out_channels", g.out_channels),
                                      .grid_height = Divisor(as_int(y.grid)),
                                      .grid_width = Divisor(as_int(x.grid)),
                                      .step = 1,
                                      .origin_y = as_int(y.origin),
                                      .origin_x = as_int(x.origin),
                                      .height = as_int(g.out_height()),
                                      .width = as_int(g.out_width()),
                                      .kernel_height = as_int(x.count > 0 ? y.count : 0),
                                      .kernel_width = as_int(y.count > 0 ? x.count : 0)}};
  const std::int64_t line = g.kernel_width * g.in_channels;
  const FilterColumns<T, kVectorBytes> b{
      .data = static_cast<const T*>(args.w),
      .filters = Divisor(a.channels),
      .width = Divisor(a.kernel_width),
      .filter_elements = as_int(g.filter_elements()),
      .channels = lib::narrow<int>("conv2d", "in_channels", g.in_channels),
      .first = as_int((y.first + s * (y.count - 1)) * line + (x.first + s * (x.count - 1)) * g.in_channels),
      .across = as_int(s * g.in_channels),
      .down = as_int(s * line - s * (x.count - 1) * g.in_channels),
      .height = a.kernel_height};
  const GridOfRows to{.height = a.grid_height,
                      .width = a.grid_width,
                      .image = g.in_height * g.in_width * g.in_channels,
                      .down = s * g.in_width * g.in_channels,
                      .across = s * g.in_channels,
                      .first = (offset_y * g.in_width + offset_x) * g.in_channels,
                      .dense = s == 1};
  return {a, b, to, a.rows, b.channels, a.columns()};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
