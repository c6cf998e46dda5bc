// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/lib/byte_address.h"
#include "kernels/lib/element.h"
#include "kernels/lib/reference.h"
#include "kernels/lib/split_k.h"
#include "kernels/ops/conv2d/epilogue.cuh"
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
/// An operand is a view with contiguous rows, along K if it is K-major, else along M or N. `row(index)` and
/// `column(index)` are what elements of a row, or of a column, have in common, computed once for many elements.
/// `at(row, column)` is the address of an element, or null where it is missing (padding, or outside of the matrix): it
/// counts as 0. In an `aligned` operand, 16-byte vectors at columns that are multiples of 8 are contiguous and aligned,
/// and exist or not as a whole.
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
  static constexpr bool kKMajor = kMajor == Major::k;
  /// As in Patches; `start` is the source's element there, of a dilated source its image.
  struct Row {
    int y, x;
    lib::ByteAddress start;
  };
  struct Column {
    int y, x, offset;
  };

  Patches patches;
  const T* data;
  bool aligned;

  __device__ Row row(int index) const {
    const Patches::Row row = patches.row(index);
    const lib::ByteAddress image = lib::address_of(data, patches.image_offset(row.image));
    return {row.y, row.x, patches.dilated() ? image : image + lib::bytes_of<T>(patches.offset_in_image(row.y, row.x))};
  }
  __device__ Column column(int index) const {
    const Patches::Column column = patches.column(index);
    return {column.y, column.x, patches.offset_in_image(column.y, column.x) + column.channel};
  }
  __device__ const T* at(const Row& row, const Column& column) const {
    if (patches.dilated()) {
      const int channel = column.offset - patches.offset_in_image(column.y, column.x);
      const Patches::Position at = patches.position({0, row.y, row.x}, {column.y, column.x, channel});
      return at.y < 0 ? nullptr : at_offset(row, patches.offset_in_image(at.y, at.x) + channel);
    }
    return patches.contains(row.y + column.y, row.x + column.x) ? at_offset(row, column.offset) : nullptr;
  }

 private:
  static __device__ const T* at_offset(const Row& row, int elements) {
    return lib::pointer_to<T>(row.start + lib::bytes_of<T>(elements));
  }
};

/// A row-major matrix in memory.
template <class T, Major kMajor>
struct StoredMatrix {
  using Element = T;
  using Row = const T*;
  using Column = int;
  static constexpr bool kKMajor = kMajor == Major::k;

  const T* data;
  int rows, columns;
  bool aligned;

  __device__ Row row(int index) const { return index < rows ? data + std::int64_t{index} * columns : nullptr; }
  __device__ Column column(int index) const { return index; }
  __device__ const T* at(Row row, int column) const { return row && column < columns ? row + column : nullptr; }
};

/// w with rows (kh, kw, o) and a column for each input channel.
template <class T>
struct DgradFilters {
  using Element = T;
  using Row = const T*;
  using Column = int;
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
  __device__ Column column(int index) const { return index; }
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
  const PatchMatrix<T, Major::k> a{Patches::of_outputs(g), x, has_aligned_rows(x, g.in_channels)};
  const int filters = lib::narrow<int>("conv2d", "out_channels", g.out_channels);
  const int k = a.patches.columns();
  return Product{a, StoredMatrix<T, Major::k>{w, filters, k, has_aligned_rows(w, k)}, a.patches.rows(), filters, k};
}

template <class T>
auto dgrad_product(const DgradArgs& args) {
  const Geometry& g = args.geometry;
  const auto* dy = static_cast<const T*>(args.dy);
  const PatchMatrix<T, Major::k> a{Patches::of_inputs(g), dy, has_aligned_rows(dy, g.out_channels)};
  const auto b = dgrad_filters(g, static_cast<const T*>(args.w));
  return Product{a, b, a.patches.rows(), b.channels, a.patches.columns()};
}

template <class T>
auto wgrad_product(const WgradArgs& args) {
  const Geometry& g = args.geometry;
  const auto* x = static_cast<const T*>(args.x);
  const auto* dy = static_cast<const T*>(args.dy);
  const PatchMatrix<T, Major::mn> b{Patches::of_outputs(g), x, has_aligned_rows(x, g.in_channels)};
  const int filters = lib::narrow<int>("conv2d", "out_channels", g.out_channels);
  const int k = b.patches.rows();
  return Product{StoredMatrix<T, Major::mn>{dy, k, filters, has_aligned_rows(dy, g.out_channels)}, b, filters,
                 b.patches.columns(), k};
}

/// A k-tile of an operand in shared memory, kMN x kK, with rows as in global memory.
template <class OperandType, int kMN, int kK>
struct OperandTile {
  using Operand = OperandType;
  using Element = typename Operand::Element;
  static constexpr bool kKMajor = Operand::kKMajor;
  static constexpr int kRows = kKMajor ? kMN : kK;
  static constexpr int kVectorsOfRow = (kKMajor ? kK : kMN) / lib::kVectorElements;
  /// One vector more, so that rows are not a multiple of 128 bytes apart: eight of them hit no bank twice.
  static constexpr int kPitch = (kVectorsOfRow + 1) * lib::kVectorElements;

  Element rows[kRows][kPitch];

  __device__ const Element* at(int row, int column) const { return &rows[row][column]; }
};

/// What a thread of a block loads of each k-tile of an operand: a 16-byte vector at the same column of every
/// kRowStep-th row. What these have in common is computed once: K-major rows for all k-tiles, their column for a
/// k-tile; else the column for all k-tiles, and rows for a k-tile.
template <class Tile, int kThreads>
class TileLoader {
 public:
  using Operand = typename Tile::Operand;

  __device__ TileLoader(const Operand& from, int first_mn)
      : row_(static_cast<int>(threadIdx.x) / Tile::kVectorsOfRow),
        column_(static_cast<int>(threadIdx.x) % Tile::kVectorsOfRow * lib::kVectorElements) {
    if constexpr (Tile::kKMajor) {
      find_rows(from, first_mn);
    } else {
      column_ += first_mn;
      common_ = from.column(column_);
    }
  }

  /// Copies by copy16(to, from) what is contiguous in memory, and stores the rest.
  template <class Copy>
  __device__ void load(Tile& tile, const Operand& from, int first_k, Copy copy16) {
    if constexpr (!Tile::kKMajor) find_rows(from, first_k);
    const int column = Tile::kKMajor ? first_k + column_ : column_;
    if (!from.aligned) return load_elements(tile, from, column);
    if constexpr (Tile::kKMajor) common_ = from.column(column);
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kLoads; ++i)
      if (has_row(i)) copy_vector(to(tile, i), from, rows_[i], copy16);
  }

 private:
  using T = typename Operand::Element;
  static constexpr int kRowStep = kThreads / Tile::kVectorsOfRow;
  static constexpr int kLoads = (Tile::kRows + kRowStep - 1) / kRowStep;
  static_assert(kThreads % Tile::kVectorsOfRow == 0);

  __device__ bool has_row(int i) const { return Tile::kRows % kRowStep == 0 || row_ + i * kRowStep < Tile::kRows; }
  __device__ T* to(Tile& tile, int i) const {
    return &tile.rows[row_ + i * kRowStep][threadIdx.x % Tile::kVectorsOfRow * lib::kVectorElements];
  }
  __device__ void find_rows(const Operand& from, int first) {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kLoads; ++i) rows_[i] = from.row(first + row_ + i * kRowStep);
  }

  template <class Copy>
  __device__ void copy_vector(T* to, const Operand& from, const typename Operand::Row& row, Copy copy16) const {
    if (const T* here = from.at(row, common_))
      copy16(to, here);
    else
      simt::store_as(to, uint4{});
  }
  __device__ void load_elements(Tile& tile, const Operand& from, int first_column) const {
    for (int j = 0; j < lib::kVectorElements; ++j) {
      const typename Operand::Column column = from.column(first_column + j);
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kLoads; ++i)
        if (has_row(i)) to(tile, i)[j] = element(from, rows_[i], column);
    }
  }
  __device__ static T element(const Operand& from, const typename Operand::Row& row,
                              const typename Operand::Column& column) {
    const T* here = from.at(row, column);
    return here ? *here : lib::from_f32<T>(0.0f);
  }

  int row_, column_;
  typename Operand::Row rows_[kLoads];
  typename Operand::Column common_;
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
///   Step::enqueue(stream, product, c, epilogue, slices)  a product; only wgrad's has several slices, c[slice]
///   Step::wgrad_tile(geometry)                           the block's tile in wgrad
template <class Step>
struct ProductPasses {
  static void forward(Stream& stream, const ForwardArgs& args) {
    check_args(args);
    check_one_group(args.geometry);
    if (args.geometry.out_elements() == 0) return;
    Step::with_type(args.dtype, [&]<class T>(lib::Element<T>) {
      Step::enqueue(stream, forward_product<T>(args), static_cast<T*>(args.y), Epilogue<T>(args), 1);
    });
  }

  static void dgrad(Stream& stream, const DgradArgs& args) {
    check_args(args);
    check_one_group(args.geometry);
    if (args.geometry.in_elements() == 0) return;
    Step::with_type(args.dtype, [&]<class T>(lib::Element<T>) {
      Step::enqueue(stream, dgrad_product<T>(args), static_cast<T*>(args.dx), NoEpilogue{}, 1);
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
      Step::enqueue(stream, product, partial_sums, NoEpilogue{}, slices);
      lib::sum_slices(stream, partial_sums, slices, g.weight_elements(), args.dw, args.accumulate, args.partial_sums);
    });
  }

  static std::size_t workspace_bytes(const Geometry& g) {
    return slice_bytes(g.out_channels, g.filter_elements(), g.batch * g.out_height() * g.out_width(),
                       Step::wgrad_tile(g));
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
