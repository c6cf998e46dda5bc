// SPDX-License-Identifier: Apache-2.0
// What the tiled variants share: the operands and C in global memory, split-K, and the dispatch on layouts.
//
// M rows and N columns of C, K summed over. An operand is K-major if K is its contiguous dimension: A as stored, B
// transposed; else it is M-major (A) or N-major (B).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/lib/channel_vector.h"
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
  bool aligned;  ///< rows are whole vectors of 8 elements at multiples of 16 bytes
  bool fours;    ///< rows are whole fours, aligned to as many elements

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

/// Neighbours in a row of C that are written at once, where rows are aligned for it.
inline constexpr int kFour = 4;

/// C, and how a sum is stored: plus what is there if `accumulate`, plus the bias of its column; with `relu` at least 0.
template <class T>
struct Output {
  void* data;
  int rows, columns;
  bool is_f32;  ///< else it is of type T
  bool fours;   ///< rows and bias are whole fours, aligned to as many elements
  bool accumulate = false;
  const T* bias = nullptr;
  bool relu = false;

  /// Where a lane puts the sums of one row.
  class Row {
   public:
    __device__ Row(const Output& c, int row)
        : c_(c),
          exists_(row < c.rows),
          is_plain_(c.fours && !c.accumulate && !c.bias && !c.relu),
          first_(std::int64_t{row} * c.columns) {}

    /// Neighbours from a column on that kCount divides. Nothing outside.
    template <int kCount>
    __device__ void put(int column, const float (&sums)[kCount]) const {
      if (!exists_ || column >= c_.columns) return;
      if (c_.is_f32)
        put_to(static_cast<float*>(c_.data) + first_ + column, column, sums);
      else
        put_to(static_cast<T*>(c_.data) + first_ + column, column, sums);
    }

   private:
    template <int kCount, class C>
    __device__ void put_to(C* to, int column, const float (&sums)[kCount]) const {
      if (kCount == kFour && is_plain_) return lib::store_channels(to, sums);
      if (kCount == kFour && c_.fours) {
        float values[kCount] = {}, biases[kCount] = {};
        if (c_.accumulate) lib::load_channels(to, values);
        if (c_.bias) lib::load_channels(c_.bias + column, biases);
        SIMT_UNROLL
        for (int j = 0; j < kCount; ++j) values[j] = finished(values[j] + sums[j] + biases[j]);
        return lib::store_channels(to, values);
      }
      SIMT_UNROLL
      for (int j = 0; j < kCount; ++j) {
        if (column + j >= c_.columns) break;
        const float before = c_.accumulate ? lib::to_f32(to[j]) : 0.0f;
        const float b = c_.bias ? lib::to_f32(c_.bias[column + j]) : 0.0f;
        to[j] = lib::from_f32<C>(finished(before + sums[j] + b));
      }
    }
    __device__ float finished(float sum) const { return c_.relu && sum < 0.0f ? 0.0f : sum; }  // NaN stays NaN

    const Output& c_;
    bool exists_;
    bool is_plain_;  ///< sums are stored as they are, by fours
    std::int64_t first_;
  };

  __device__ Row row(int at) const { return Row(*this, at); }
  /// One sum. Nothing outside.
  __device__ void put(int row, int column, float sum) const { Row(*this, row).template put<1>(column, {sum}); }
};

/// The sums of mma and wgmma: a lane has two neighbours of a row of each 8 columns, at column 2 (lane % 4). Of `first`
/// and, 8 columns later, `second` it makes four neighbours, by an exchange with the next lane: even lanes those of
/// `first`, odd ones those of `second`. Their column is four_column(lane). All lanes of the warp.
__device__ inline void join_pairs(int lane, const float (&first)[2], const float (&second)[2], float (&four)[kFour]) {
  const bool odd = lane % 2 != 0;
  SIMT_UNROLL
  for (int i = 0; i < 2; ++i) {
    const float others = __shfl_xor_sync(~0u, odd ? first[i] : second[i], 1);
    four[i] = odd ? others : first[i];
    four[2 + i] = odd ? second[i] : others;
  }
}
__device__ constexpr int four_column(int lane) { return lane % 2 * 8 + lane % 4 / 2 * kFour; }

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
        c{.data = args.c,
          .rows = extent(args.m),
          .columns = extent(args.n),
          .is_f32 = args.c_dtype == DType::f32,
          .fours = are_fours<T>(args.n, args.bias) &&
                   (args.c_dtype == DType::f32 ? are_fours<float>(args.n, args.c) : are_fours<T>(args.n, args.c)),
          .accumulate = args.accumulate,
          .bias = static_cast<const T*>(args.bias),
          .relu = args.relu},
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
    return {static_cast<const T*>(data), extent(rows), extent(columns), aligned, are_fours<T>(columns, data)};
  }
  /// True of null, too.
  template <class C>
  static bool are_fours(std::int64_t columns, const void* data) {
    return lib::fit_vectors<C, kFour>(columns, {data});
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

/// Adds up `count` slices of C (sum_slices.cu).
template <class T>
void sum_slices(Stream& stream, const float* slices, int count, const Output<T>& c);

/// Into how many slices K is cut: as many as fill the device with `grid`'s tiles, of at least `min_k_tiles` k-tiles.
template <class T>
int slices_of(const Problem<T>& problem, int tile_k, int min_k_tiles, dim3 grid) {
  return lib::slices_of(lib::ceil_div(problem.k, tile_k), kBlocksWanted / (std::int64_t{grid.x} * grid.y), min_k_tiles);
}

/// Calls product(to, k_tiles_of_slice) to enqueue the kernel that computes C, after setting `grid`.z to the number of
/// slices, and adds these up if there are several.
///
/// Errors    InvalidArgument if there is no workspace for them.
template <class T, class Product>
void with_slices(Stream& stream, const Args& args, const Problem<T>& problem, int tile_k, int min_k_tiles, dim3& grid,
                 Product product) {
  const int slices = slices_of(problem, tile_k, min_k_tiles, grid);
  const int k_tiles_of_slice = static_cast<int>(lib::ceil_div(lib::ceil_div(problem.k, tile_k), slices));
  const Output<T>& c = problem.c;
  grid.z = static_cast<unsigned>(slices);
  if (slices == 1) return product(c, k_tiles_of_slice);
  lib::check_pointer("gemm", "workspace", args.workspace);
  product(Output<T>{.data = args.workspace,
                    .rows = c.rows,
                    .columns = c.columns,
                    .is_f32 = true,
                    .fours = c.columns % kFour == 0},
          k_tiles_of_slice);
  if (args.partial_sums && c.is_f32 && !c.accumulate && !c.bias && !c.relu) {
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
