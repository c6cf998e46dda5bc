// SPDX-License-Identifier: Apache-2.0
// What the variants with tiles share: the operands as they lie in memory, C, and the dispatch on transposes.
//
// A variant sees op(A) as outer x inner and op(B) as inner x outer: "outer" are the rows of C for A, its columns for B.
// A factor lies "along" if its inner index is the contiguous one: A as it is, B transposed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/lib/element.h"
#include "kernels/lib/reference.h"
#include "kernels/ops/gemm/gemm.h"
#include "kernels/runtime/stream.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {

/// Eight neighbours in a row: 16 bytes of 16-bit elements, what one load and one row of ldmatrix take.
inline constexpr int kPiece = 8;
template <class T>
struct alignas(16) Piece {
  T x[kPiece];
};

/// A factor as it lies in memory.
template <class T>
struct Matrix {
  const T* data;
  int rows, columns;
  bool wide;  ///< every piece begins at a multiple of 16 bytes, and none is cut by the end of a row

  __device__ bool holds(int row, int column) const { return row < rows && column < columns; }
  __device__ const T* at(int row, int column) const { return data + std::int64_t{row} * columns + column; }
  /// 0 outside, so that edges need no other code.
  __device__ T value(int row, int column) const { return holds(row, column) ? *at(row, column) : lib::from_f32<T>(0); }
  __device__ Piece<T> piece(int row, int column) const {
    if (wide && holds(row, column)) return simt::load_as<Piece<T>>(at(row, column));
    Piece<T> elements;
    for (int i = 0; i < kPiece; ++i) elements.x[i] = value(row, column + i);
    return elements;
  }
};

/// Two neighbours of C, written at once.
template <class C>
struct alignas(2 * sizeof(C)) Pair {
  C x[2];
};

/// C, and what becomes of a sum.
template <class T>
struct Output {
  void* data;
  int rows, columns;
  bool is_f32;  ///< else it is of type T
  bool accumulate;

  __device__ void put(std::int64_t at, float sum) const {
    if (is_f32)
      put_to(static_cast<float*>(data) + at, sum);
    else
      put_to(static_cast<T*>(data) + at, sum);
  }
  /// Nothing outside.
  __device__ void put(int row, int column, float sum) const {
    if (row < rows && column < columns) put(std::int64_t{row} * columns + column, sum);
  }
  /// Two neighbours, the first at an even column.
  __device__ void put_pair(int row, int column, float first, float second) const {
    if (columns % 2 != 0 || reinterpret_cast<std::uintptr_t>(data) % sizeof(Pair<float>) != 0) {
      put(row, column, first);
      put(row, column + 1, second);
    } else if (row < rows && column < columns) {
      const std::int64_t at = std::int64_t{row} * columns + column;
      if (is_f32)
        put_pair_to(static_cast<float*>(data) + at, first, second);
      else
        put_pair_to(static_cast<T*>(data) + at, first, second);
    }
  }

 private:
  template <class C>
  __device__ void put_pair_to(C* to, float first, float second) const {
    if (accumulate) {
      const auto old = simt::load_as<Pair<C>>(to);
      first += lib::to_f32(old.x[0]);
      second += lib::to_f32(old.x[1]);
    }
    simt::store_as(to, Pair<C>{lib::from_f32<C>(first), lib::from_f32<C>(second)});
  }
  template <class C>
  __device__ void put_to(C* to, float sum) const {
    *to = lib::from_f32<C>(accumulate ? lib::to_f32(*to) + sum : sum);
  }
};

/// The part of a factor that is multiplied at once, with its rows and columns in memory's order.
template <int kOuterExtent, int kInnerExtent, bool kAlong>
struct TileShape {
  static constexpr int kRows = kAlong ? kOuterExtent : kInnerExtent;
  static constexpr int kColumns = kAlong ? kInnerExtent : kOuterExtent;
  static constexpr int kPieces = kRows * kColumns / kPiece;
};

/// The product of `args` as kernels see it.
template <class T>
struct Problem {
  Matrix<T> a, b;
  Output<T> c;
  int inner;

  explicit Problem(const Args& args)
      : a(matrix(args.a, args.transpose_a ? args.k : args.m, args.transpose_a ? args.m : args.k)),
        b(matrix(args.b, args.transpose_b ? args.n : args.k, args.transpose_b ? args.k : args.n)),
        c{args.c, extent(args.m), extent(args.n), args.c_dtype == DType::f32, args.accumulate},
        inner(extent(args.k)) {}

  /// A block for each tile of C.
  dim3 tiles(int tile_rows, int tile_columns) const {
    const int columns = (c.columns - 1) / tile_columns + 1;
    lib::check_limit("gemm", "n / tile columns", columns, 65535);
    return dim3(static_cast<unsigned>((c.rows - 1) / tile_rows + 1), static_cast<unsigned>(columns));
  }

 private:
  /// Small enough that the index of a tile's last row fits in int, too.
  static int extent(std::int64_t value) {
    lib::check_limit("gemm", "an extent", value, std::int64_t{1} << 30);
    return static_cast<int>(value);
  }
  static Matrix<T> matrix(const void* data, std::int64_t rows, std::int64_t columns) {
    const bool wide = columns % kPiece == 0 && reinterpret_cast<std::uintptr_t>(data) % sizeof(Piece<T>) == 0;
    return {static_cast<const T*>(data), extent(rows), extent(columns), wide};
  }
};

/// Calls visit(a_along, b_along), two std::bool_constant.
template <class Visit>
void with_storage(const Args& args, Visit visit) {
  const auto with_b = [&](auto a_along) {
    if (args.transpose_b)
      visit(a_along, std::true_type());
    else
      visit(a_along, std::false_type());
  };
  if (args.transpose_a)
    with_b(std::false_type());
  else
    with_b(std::true_type());
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm

/// A small C has few tiles, and leaves most of a GPU without work. So several blocks share the inner index of a tile:
/// block z adds up the z-th part of it, into a matrix of its own in the workspace, and a second kernel adds those up,
/// always in the same order.
namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {

inline constexpr int kBlocksWanted = 128;  // about as many as a GPU has processors

/// `rounds` of a block's loop along the inner index for each of `count` shares; the last may have fewer, but not none.
struct Shares {
  int rounds, count;

  /// Of `inner` indices, `of_round` of which are a round, for so many tiles of C; a share has at least `least_rounds`.
  Shares(int inner, int of_round, int least_rounds, std::int64_t tiles) {
    const int all = inner == 0 ? 0 : (inner - 1) / of_round + 1;
    const auto wanted = static_cast<int>(std::clamp<std::int64_t>(kBlocksWanted / tiles, 1, kBlocksWanted));
    const int most = std::max(all / least_rounds, 1);
    rounds = (all - 1) / std::min(wanted, most) + 1;
    count = all == 0 ? 1 : (all - 1) / rounds + 1;
  }
};

/// Enough for the shares of any product: there are kBlocksWanted of tiles at most.
constexpr std::size_t share_bytes(int tile_rows, int tile_columns) {
  return sizeof(float) * kBlocksWanted * static_cast<std::size_t>(tile_rows * tile_columns);
}

/// The rounds of this block: blockIdx.z is the number of its share.
struct RoundsOfBlock {
  int first, count;

  __device__ RoundsOfBlock(int inner, int of_round, int rounds_of_share)
      : first(static_cast<int>(blockIdx.z) * rounds_of_share) {
    const int left = (inner + of_round - 1) / of_round - first;
    count = left < rounds_of_share ? left : rounds_of_share;
  }
};

/// Where this block's sums go: to C itself, or to its share.
template <class T>
__device__ Output<T> output_of_block(const Output<T>& c) {
  Output<T> to = c;
  if (gridDim.z > 1) to.data = static_cast<float*>(c.data) + std::int64_t{blockIdx.z} * c.rows * c.columns;
  return to;
}

/// Adds up `count` shares of C, with grid_range. T is __half or __nv_bfloat16.
template <class T>
void add_shares(Stream& stream, const float* shares, int count, const Output<T>& c);

/// Calls product(to) to enqueue the kernel that computes C in these shares, with gridDim.z = shares.count, and adds
/// them up if there are several.
///
/// Errors    InvalidArgument if there is no workspace for them.
template <class T, class Product>
void with_shares(Stream& stream, const Args& args, const Output<T>& c, const Shares& shares, Product product) {
  if (shares.count == 1) return product(c);
  lib::check_pointer("gemm", "workspace", args.workspace);
  product(Output<T>{args.workspace, c.rows, c.columns, true, false});
  add_shares(stream, static_cast<const float*>(args.workspace), shares.count, c);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
