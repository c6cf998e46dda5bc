// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/lib/reference.h"
#include "kernels/lib/split_k.h"
#include "kernels/ops/conv2d/patches.cuh"
#include "kernels/runtime/stream.h"
#include "kernels/simt/simt.h"

/// The three passes as matrix products C = A B, with views of x, w and dy as A and B, and C a plain matrix:
///
///   pass      rows (M) of C     columns (N) of C      K (summed over)   A                  B
///   forward   (n, oh, ow)       o                     (kh, kw, i)       patches of x       w
///   dgrad     (n, ih, iw)       i                     (kh, kw, o)       patches of dy      w, its rows reordered
///   wgrad     o                 (kh, kw, i)           (n, oh, ow)       dy                 patches of x
///
/// An operand is a view with contiguous rows, along K if it is K-major, else along M or N: `row(index)` is computed
/// once for each row; `at(row, column)` is the address of an element, or null where it is missing (padding, or outside
/// of the matrix): it counts as 0. In an `aligned` operand, 16-byte vectors at columns that are multiples of 8 are
/// contiguous and aligned, and exist or not as a whole.
namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// The contiguous dimension of an operand: K, or M of A and N of B.
enum class Major { k, mn };

/// Whether rows of so many elements, one after the other from `data` on, are whole and aligned 16-byte vectors.
template <class T>
bool has_aligned_rows(const T* data, std::int64_t elements) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && elements * sizeof(T) % 16 == 0;
}

template <class T, Major kMajor>
struct PatchMatrix {
  using Element = T;
  using Row = Patches::Row;
  static constexpr bool kKMajor = kMajor == Major::k;

  Patches patches;
  const T* data;
  bool aligned;

  __device__ Row row(int index) const { return patches.row(index); }
  __device__ const T* at(const Row& row, int column) const {
    const Patches::Position position = patches.position(row, patches.column(column));
    return position.y < 0 ? nullptr : data + patches.offset(position);
  }
};

/// A row-major matrix in memory.
template <class T, Major kMajor>
struct StoredMatrix {
  using Element = T;
  using Row = const T*;
  static constexpr bool kKMajor = kMajor == Major::k;

  const T* data;
  int rows, columns;
  bool aligned;

  __device__ Row row(int index) const { return index < rows ? data + std::int64_t{index} * columns : nullptr; }
  __device__ const T* at(Row row, int column) const { return row && column < columns ? row + column : nullptr; }
};

/// w with rows (kh, kw, o) and a column for each input channel.
template <class T>
struct DgradFilters {
  using Element = T;
  using Row = const T*;
  static constexpr bool kKMajor = false;

  const T* data;
  Divisor filters;
  int kernel_positions, channels;
  bool aligned;

  __device__ Row row(int index) const {
    const auto [position, filter] = filters.divide(index);
    return position < kernel_positions ? data + (std::int64_t{filter} * kernel_positions + position) * channels
                                       : nullptr;
  }
  __device__ const T* at(Row row, int column) const { return row && column < channels ? row + column : nullptr; }
};

template <class A, class B>
struct Product {
  A a;
  B b;
  int rows, columns, k;
};
template <class A, class B>
Product(A, B, int, int, int) -> Product<A, B>;

inline void check_one_group(const Geometry& g) { lib::check_limit("conv2d", "groups", g.groups, 1); }

inline Patches::Outputs all_outputs(const Geometry& g) { return {g.out_height(), g.out_width()}; }

template <class T>
DgradFilters<T> dgrad_filters(const Geometry& g, const T* w) {
  return {w, Divisor(lib::narrow<int>("conv2d", "out_channels", g.out_channels)),
          static_cast<int>(g.kernel_height * g.kernel_width), lib::narrow<int>("conv2d", "in_channels", g.in_channels),
          has_aligned_rows(w, g.in_channels)};
}

template <class T>
auto forward_product(const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  const auto* x = static_cast<const T*>(args.x);
  const auto* w = static_cast<const T*>(args.w);
  const PatchMatrix<T, Major::k> a{Patches::of_outputs(g, all_outputs(g)), x, has_aligned_rows(x, g.in_channels)};
  const int filters = lib::narrow<int>("conv2d", "out_channels", g.out_channels);
  const int k = a.patches.columns();
  return Product{a, StoredMatrix<T, Major::k>{w, filters, k, has_aligned_rows(w, k)}, a.patches.rows(), filters, k};
}

template <class T>
auto dgrad_product(const DgradArgs& args) {
  const Geometry& g = args.geometry;
  const auto* dy = static_cast<const T*>(args.dy);
  const PatchMatrix<T, Major::k> a{Patches::of_inputs(g, all_outputs(g)), dy, has_aligned_rows(dy, g.out_channels)};
  const auto b = dgrad_filters(g, static_cast<const T*>(args.w));
  return Product{a, b, a.patches.rows(), b.channels, a.patches.columns()};
}

template <class T>
auto wgrad_product(const WgradArgs& args) {
  const Geometry& g = args.geometry;
  const auto* x = static_cast<const T*>(args.x);
  const auto* dy = static_cast<const T*>(args.dy);
  const PatchMatrix<T, Major::mn> b{Patches::of_outputs(g, all_outputs(g)), x, has_aligned_rows(x, g.in_channels)};
  const int filters = lib::narrow<int>("conv2d", "out_channels", g.out_channels);
  const int k = b.patches.rows();
  return Product{StoredMatrix<T, Major::mn>{dy, k, filters, has_aligned_rows(dy, g.out_channels)}, b, filters,
                 b.patches.columns(), k};
}

/// A 16-byte vector of a row to shared memory, by copy16(to, from) where it is contiguous; 0 for what is not there.
template <class Operand, class T, class Copy>
__device__ void copy_vector(T* to, const Operand& from, const typename Operand::Row& row, int column, Copy copy16) {
  if (from.aligned) {
    if (const T* here = from.at(row, column))
      copy16(to, here);
    else
      simt::store_as(to, uint4{});
    return;
  }
  for (int i = 0; i < lib::kVectorElements; ++i) {
    const T* here = from.at(row, column + i);
    to[i] = here ? *here : lib::from_f32<T>(0.0f);
  }
}

/// The same, by the operand's own load(to, row, column, copy16) if it has one.
template <class Operand, class T, class Copy>
__device__ void load_vector(T* to, const Operand& from, const typename Operand::Row& row, int column, Copy copy16) {
  if constexpr (requires { from.load(to, row, column, copy16); })
    from.load(to, row, column, copy16);
  else
    copy_vector(to, from, row, column, copy16);
}

/// A k-tile of an operand in shared memory, kMN x kK, with rows as in global memory.
template <class Operand, int kMN, int kK>
struct OperandTile {
  using Element = typename Operand::Element;
  static constexpr bool kKMajor = Operand::kKMajor;
  static constexpr int kRows = kKMajor ? kMN : kK;
  static constexpr int kVectorsOfRow = (kKMajor ? kK : kMN) / lib::kVectorElements;
  /// One vector more, so that rows are not a multiple of 128 bytes apart: eight of them hit no bank twice.
  static constexpr int kPitch = (kVectorsOfRow + 1) * lib::kVectorElements;

  Element rows[kRows][kPitch];

  template <int kThreads, class Copy>
  __device__ void load(const Operand& from, int first_mn, int first_k, Copy copy16) {
    const int first_row = kKMajor ? first_mn : first_k;
    const int first_column = kKMajor ? first_k : first_mn;
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kVectorsOfRow; i += kThreads) {
      const int row = i / kVectorsOfRow;
      const int column = i % kVectorsOfRow * lib::kVectorElements;
      load_vector(&rows[row][column], from, from.row(first_row + row), first_column + column, copy16);
    }
  }

  __device__ const Element* at(int row, int column) const { return &rows[row][column]; }
};

/// A block's tile of C, and the K extent of its k-tiles.
struct TileShape {
  int rows, columns, k;
};

/// How many split-K slices fill a large GPU: kWarpTiles warps, of 32 rows each.
constexpr std::int64_t wanted_slices(std::int64_t rows, std::int64_t columns, const TileShape& tile) {
  constexpr std::int64_t kWarpTiles = 1024;
  const std::int64_t warp_tiles =
      lib::ceil_div(rows, tile.rows) * (tile.rows / 32) * lib::ceil_div(columns, tile.columns);
  return kWarpTiles / std::max<std::int64_t>(1, warp_tiles);
}

inline constexpr std::int64_t kMinKTiles = 4;  // of a slice: it must be worth storing a tile for

constexpr int slices_of(std::int64_t rows, std::int64_t columns, std::int64_t k, const TileShape& tile) {
  return lib::slices_of(lib::ceil_div(k, tile.k), wanted_slices(rows, columns, tile), kMinKTiles);
}

/// The workspace of the slices; enough for any smaller K, too.
constexpr std::size_t slice_bytes(std::int64_t rows, std::int64_t columns, std::int64_t k, const TileShape& tile) {
  const std::int64_t slices = lib::max_slices(lib::ceil_div(k, tile.k), wanted_slices(rows, columns, tile), kMinKTiles);
  return static_cast<std::size_t>(slices * rows * columns) * sizeof(float);
}

/// The K extent of all slices but the last.
constexpr int k_of_slice(std::int64_t k, const TileShape& tile, int slices) {
  return static_cast<int>(std::min(k, lib::ceil_div(lib::ceil_div(k, tile.k), slices) * tile.k));
}

/// A block for each tile of each slice.
inline dim3 grid_of(std::int64_t rows, std::int64_t columns, const TileShape& tile, int slices) {
  lib::check_limit("conv2d", "tiles of columns", lib::ceil_div(columns, tile.columns), 65535);
  return {static_cast<unsigned>(lib::ceil_div(rows, tile.rows)),
          static_cast<unsigned>(lib::ceil_div(columns, tile.columns)), static_cast<unsigned>(slices)};
}

/// The three passes of a variant that computes them as products. What variants differ in:
///   Step::with_type(dtype, visit)                        the types that it knows
///   Step::enqueue(stream, product, c, slices)            a product; only wgrad's has several slices, c[slice]
///   Step::wgrad_tile(geometry)                           the block's tile in wgrad
template <class Step>
struct ProductPasses {
  static void forward(Stream& stream, const ForwardArgs& args) {
    check_args(args);
    check_one_group(args.geometry);
    if (args.geometry.out_elements() == 0) return;
    Step::with_type(args.dtype, [&]<class T>(lib::Element<T>) {
      Step::enqueue(stream, forward_product<T>(args), static_cast<T*>(args.y), 1);
    });
  }

  static void dgrad(Stream& stream, const DgradArgs& args) {
    check_args(args);
    check_one_group(args.geometry);
    if (args.geometry.in_elements() == 0) return;
    Step::with_type(args.dtype, [&]<class T>(lib::Element<T>) {
      Step::enqueue(stream, dgrad_product<T>(args), static_cast<T*>(args.dx), 1);
    });
  }

  static void wgrad(Stream& stream, const WgradArgs& args) {
    check_args(args);
    check_one_group(args.geometry);
    const Geometry& g = args.geometry;
    if (g.weight_elements() == 0) return;
    lib::check_pointer("conv2d wgrad", "workspace", args.workspace);
    auto* const partial_sums = static_cast<float*>(args.workspace);
    Step::with_type(args.dtype, [&]<class T>(lib::Element<T>) {
      const auto product = wgrad_product<T>(args);
      const int slices = slices_of(product.rows, product.columns, product.k, Step::wgrad_tile(g));
      Step::enqueue(stream, product, partial_sums, slices);
      lib::sum_slices(stream, partial_sums, slices, g.weight_elements(), args.dw, args.accumulate);
    });
  }

  static std::size_t workspace_bytes(const Geometry& g) {
    return slice_bytes(g.out_channels, g.filter_elements(), g.batch * g.out_height() * g.out_width(),
                       Step::wgrad_tile(g));
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
