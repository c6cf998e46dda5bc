// SPDX-License-Identifier: Apache-2.0
// What the tiled variants share: the operands and C in global memory, split-K, and the dispatch on layouts.
//
// M rows and N columns of C, K summed over. An operand is K-major if K is its contiguous dimension: A as stored, B
// transposed; else it is M-major (A) or N-major (B).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/lib/element.h"
#include "kernels/lib/reference.h"
#include "kernels/lib/split_k.h"
#include "kernels/ops/gemm/gemm.h"
#include "kernels/runtime/stream.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {

template <class T>
struct alignas(16) Vector {
  T x[lib::kVectorElements];
};

/// An operand as stored.
template <class T>
struct Matrix {
  const T* data;
  int rows, columns;
  bool aligned;  ///< rows are whole 16-byte vectors at multiples of 16 bytes

  __device__ bool holds(int row, int column) const { return row < rows && column < columns; }
  __device__ const T* at(int row, int column) const { return data + std::int64_t{row} * columns + column; }
  /// 0 outside, so that edges need no other code.
  __device__ T value(int row, int column) const { return holds(row, column) ? *at(row, column) : lib::from_f32<T>(0); }
  __device__ Vector<T> vector(int row, int column) const {
    if (aligned && holds(row, column)) return simt::load_as<Vector<T>>(at(row, column));
    Vector<T> elements;
    for (int i = 0; i < lib::kVectorElements; ++i) elements.x[i] = value(row, column + i);
    return elements;
  }
};

/// Two neighbours of C, written at once.
template <class C>
struct alignas(2 * sizeof(C)) Pair {
  C x[2];
};

/// C, and how a sum is stored.
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

/// A k-tile of an operand: kMN rows of op(A) or columns of op(B), kK of K; its rows and columns in memory's order.
template <int kMN, int kK, bool kIsKMajor>
struct TileShape {
  static constexpr bool kKMajor = kIsKMajor;
  static constexpr int kRows = kKMajor ? kMN : kK;
  static constexpr int kColumns = kKMajor ? kK : kMN;
  static constexpr int kVectors = kRows * kColumns / lib::kVectorElements;
};

/// The product of `args` as kernels see it.
template <class T>
struct Problem {
  Matrix<T> a, b;
  Output<T> c;
  int k;

  explicit Problem(const Args& args)
      : a(matrix(args.a, args.transpose_a ? args.k : args.m, args.transpose_a ? args.m : args.k)),
        b(matrix(args.b, args.transpose_b ? args.n : args.k, args.transpose_b ? args.k : args.n)),
        c{args.c, extent(args.m), extent(args.n), args.c_dtype == DType::f32, args.accumulate},
        k(extent(args.k)) {}

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
    const bool aligned =
        columns % lib::kVectorElements == 0 && reinterpret_cast<std::uintptr_t>(data) % sizeof(Vector<T>) == 0;
    return {static_cast<const T*>(data), extent(rows), extent(columns), aligned};
  }
};

/// Calls visit(a_k_major, b_k_major), two std::bool_constant.
template <class Visit>
void with_layouts(const Args& args, Visit visit) {
  lib::with_bool(!args.transpose_a, [&](auto a_k_major) {
    lib::with_bool(args.transpose_b, [&](auto b_k_major) { visit(a_k_major, b_k_major); });
  });
}

inline constexpr int kBlocksWanted = 128;  // about as many as a GPU has multiprocessors

/// Enough for the slices of any product: there are kBlocksWanted tiles at most.
constexpr std::size_t workspace_bytes(int tile_rows, int tile_columns) {
  return sizeof(float) * kBlocksWanted * static_cast<std::size_t>(tile_rows * tile_columns);
}

/// The k-tiles of this block's slice.
struct KTilesOfBlock {
  int first, count;

  __device__ KTilesOfBlock(int k, int tile_k, int k_tiles_of_slice)
      : first(static_cast<int>(blockIdx.z) * k_tiles_of_slice) {
    const int left = (k + tile_k - 1) / tile_k - first;
    count = left < k_tiles_of_slice ? left : k_tiles_of_slice;
  }
};

/// Where this block's sums go: to C itself, or to its slice.
template <class T>
__device__ Output<T> output_of_block(const Output<T>& c) {
  Output<T> to = c;
  if (gridDim.z > 1) to.data = static_cast<float*>(c.data) + std::int64_t{blockIdx.z} * c.rows * c.columns;
  return to;
}

/// Adds up `count` slices of C. T is __half or __nv_bfloat16.
template <class T>
void sum_slices(Stream& stream, const float* slices, int count, const Output<T>& c);

/// Calls product(to, k_tiles_of_slice) to enqueue the kernel that computes C, after setting `grid`.z to the number of
/// slices, and adds these up if there are several.
///
/// Errors    InvalidArgument if there is no workspace for them.
template <class T, class Product>
void with_slices(Stream& stream, const Args& args, const Problem<T>& problem, int tile_k, int min_k_tiles, dim3& grid,
                 Product product) {
  const std::int64_t k_tiles = lib::ceil_div(problem.k, tile_k);
  const int slices = lib::slices_of(k_tiles, kBlocksWanted / (std::int64_t{grid.x} * grid.y), min_k_tiles);
  const int k_tiles_of_slice = static_cast<int>(lib::ceil_div(k_tiles, slices));
  const Output<T>& c = problem.c;
  grid.z = static_cast<unsigned>(slices);
  if (slices == 1) return product(c, k_tiles_of_slice);
  lib::check_pointer("gemm", "workspace", args.workspace);
  product(Output<T>{args.workspace, c.rows, c.columns, true, false}, k_tiles_of_slice);
  if (args.partial_sums && args.c_dtype == DType::f32 && !args.accumulate) {
    const std::int64_t elements = std::int64_t{c.rows} * c.columns;
    args.partial_sums->push_back({.slices = static_cast<const float*>(args.workspace),
                                  .count = slices,
                                  .stride = elements,
                                  .elements = elements,
                                  .to = static_cast<float*>(args.c)});
    return;
  }
  sum_slices(stream, static_cast<const float*>(args.workspace), slices, c);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
