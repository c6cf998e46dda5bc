// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/gemm/tiles.h"
#include "kernels/lib/async_copy.h"
#include "kernels/lib/tensor_core.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {

/// A tile of a factor in shared memory, for ldmatrix: rows in memory's order without padding, but the pieces of a row
/// lie in an order of its own (XOR swizzle), so that 8 neighbouring rows of a piece lie in all 32 banks.
template <int kOuterExtent, int kInnerExtent, bool kAlong>
struct MmaTile : TileShape<kOuterExtent, kInnerExtent, kAlong> {
  using Shape = TileShape<kOuterExtent, kInnerExtent, kAlong>;
  static constexpr int kElements = Shape::kRows * Shape::kColumns;
  static constexpr bool kLiesAlong = kAlong;

  /// Where the piece that begins at this place lies.
  __device__ static int at(int row, int column) {
    // Rows of 64 bytes: two share 128 bytes, what all banks hold, and have 4 places each.
    const int swizzle = Shape::kColumns >= 64 ? row % 8 : row / 2 % 4;
    return row * Shape::kColumns + (column / kPiece ^ swizzle) * kPiece;
  }

  /// Starts to copy a tile: by cp.async, except pieces at an edge and in rows that are not aligned. `kThreads` in the
  /// block.
  template <int kThreads, class T>
  __device__ static void start(const Matrix<T>& from, int first_outer, int first_inner, T* tile) {
    const int first_row = kAlong ? first_outer : first_inner;
    const int first_column = kAlong ? first_inner : first_outer;
    constexpr int kPiecesOfRow = Shape::kColumns / kPiece;
    static_assert(Shape::kPieces % kThreads == 0);
    SIMT_UNROLL_ON_GPU
    for (int round = 0; round < Shape::kPieces / kThreads; ++round) {
      const int i = static_cast<int>(threadIdx.x) + round * kThreads;
      const int row = i / kPiecesOfRow;
      const int column = i % kPiecesOfRow * kPiece;
      T* to = tile + at(row, column);
      if (from.wide && from.holds(first_row + row, first_column + column))
        async_copy16(to, from.at(first_row + row, first_column + column));
      else
        simt::store_as<Piece<T>>(to, from.piece(first_row + row, first_column + column));
    }
  }

  /// Loads 16 outer x 16 inner indices: a tile of a if `kOfA`, else two of b. See kernels/lib/tensor_core.h.
  template <bool kOfA, class T>
  __device__ static void load(const T* tile, int outer, int inner, int lane, std::uint32_t (&registers)[4]) {
    const simt::Place place = kOfA == kAlong ? simt::matrices_down(lane) : simt::matrices_across(lane);
    if constexpr (kAlong)
      lib::ldmatrix_x4(registers, tile + at(outer + place.row, inner + place.column));
    else
      lib::ldmatrix_x4_trans(registers, tile + at(inner + place.row, outer + place.column));
  }
};

/// The sums of a warp, in registers.
template <int kRows, int kColumns>
class MmaSums {
 public:
  /// Adds the product over 16 inner indices; `row` and `column` are the warp's first in the block's tiles.
  template <class A, class B, class T>
  __device__ void add(const T* a_tile, int row, const T* b_tile, int column, int inner, int lane) {
    std::uint32_t a[kRows / 16][4], b[kColumns / 16][4];
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kRows / 16; ++i) A::template load<true>(a_tile, row + 16 * i, inner, lane, a[i]);
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < kColumns / 16; ++j) B::template load<false>(b_tile, column + 16 * j, inner, lane, b[j]);
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kRows / 16; ++i) {
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < kColumns / 8; ++j)
        lib::mma_m16n8k16<T>(sums_[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }

  /// Calls visit(row, column, sum) for every sum that this lane holds.
  template <class Visit>
  __device__ void for_each(int lane, Visit visit) const {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kRows / 16; ++i) {
      SIMT_UNROLL_ON_GPU
      for (int j = 0; j < kColumns / 8; ++j) {
        SIMT_UNROLL_ON_GPU
        for (int at = 0; at < 4; ++at) {
          const simt::Place place = simt::mma_place_in_c(lane, at);
          visit(16 * i + place.row, 8 * j + place.column, sums_[i][j][at]);
        }
      }
    }
  }

 private:
  float sums_[kRows / 16][kColumns / 8][4] = {};
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
