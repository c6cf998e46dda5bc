// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/lib/async_copy.h"
#include "kernels/simt/engine/tensor_layout.h"
#include "kernels/simt/simt.h"

/// A k-tile of an operand in shared memory, in rows of 128 bytes whose 16-byte vectors are XOR-swizzled by the number
/// of the row. Eight rows hit no bank twice, neither in a column (ldmatrix, or threads with a row each) nor in a row
/// (cp.async), and wgmma knows the pattern.
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Elements of a row, and of K in a k-tile.
template <class T>
inline constexpr int kSwizzledRow = simt::kSwizzledRowBytes / sizeof(T);

/// kMN x kK elements. K-major: a row for each index of M or N. Else boxes of kK along M or N, one after the other, each
/// with a row for each index of K.
///
/// Aliasing  begins at a multiple of 1,024.
template <class T, int kMN, bool kIsKMajor>
struct alignas(16) SwizzledTile {
  using Element = T;
  static constexpr bool kKMajor = kIsKMajor;
  static constexpr int kK = kSwizzledRow<T>;
  static constexpr int kVector = 16 / sizeof(T);
  static constexpr int kRowBytes = simt::kSwizzledRowBytes;
  static constexpr int kBoxBytes = kK * kRowBytes;  ///< of kK along M or N
  static_assert(kMN % kK == 0 || (kIsKMajor && kMN % 8 == 0));

  T elements[kMN * kK];

  /// The vector at that row and column in memory's order.
  __device__ const T* at(int row, int column) const {
    const int vector = column % kK / kVector ^ row % 8;
    return elements + (column / kK * kK + row) * kK + vector * kVector;
  }

  /// What wgmma takes for the tile from M or N = mn on, a multiple of 64, and from K = k on, a multiple of 16; `tile`
  /// is what it takes for the whole tile.
  __device__ static simt::MatrixDescriptor operand(std::uint32_t tile_address) {
    return simt::MatrixDescriptor::of(tile_address, kBoxBytes, simt::kSwizzlePatternBytes);
  }
  __device__ static simt::MatrixDescriptor at(simt::MatrixDescriptor tile, int mn, int k) {
    return tile.advanced(static_cast<std::uint32_t>(mn * kRowBytes + k * (kIsKMajor ? int{sizeof(T)} : kRowBytes)));
  }
};

/// The vectors of a swizzled tile that a thread copies: of each box one at the same column of every kRowsOfPass-th row.
template <class T, int kThreads, int kVectorBytes>
struct SwizzledVectors {
  static constexpr unsigned kVectorsOfRow = simt::kSwizzledRowBytes / kVectorBytes;
  static constexpr int kRowsOfPass = kThreads / kVectorsOfRow;
  static constexpr int kRowsOfWarp = 32 / static_cast<int>(kVectorsOfRow);
  static constexpr int kBoxBytes = kSwizzledRow<T> * static_cast<int>(simt::kSwizzledRowBytes);
  static_assert(kRowsOfPass % 4 == 0);

  __device__ static int row() { return static_cast<int>(threadIdx.x / kVectorsOfRow); }
  /// The first of its elements in a row.
  __device__ static int column() { return static_cast<int>(threadIdx.x % kVectorsOfRow * (kVectorBytes / sizeof(T))); }
  /// Of the first vector in the tile.
  __device__ static int offset_bytes() {
    const unsigned row = threadIdx.x / kVectorsOfRow;
    const unsigned byte = threadIdx.x % kVectorsOfRow * kVectorBytes;
    return static_cast<int>(row * simt::kSwizzledRowBytes + (byte ^ row % 8 * 16));
  }
  /// Starts the copy of the vector of that pass and box, or clears it; `first` is the address of the first one.
  template <int kPass, int kBox>
  __device__ static void copy(SharedAddress first, const void* from, bool exists) {
    constexpr int kRow = kPass * kRowsOfPass;
    constexpr int kOffset = kRow * static_cast<int>(simt::kSwizzledRowBytes) + kBox * kBoxBytes;
    if constexpr (kRow % 8 != 0) first.address = other_half(first).address;
    async_copy_or_zero<kVectorBytes, kOffset>(first, from, exists);
  }

 private:
  /// Four rows further, the swizzle has another upper bit.
  __device__ static SharedAddress other_half(SharedAddress address) {
#ifdef __CUDACC__
    address.address ^= 64;
#else
    address.address = reinterpret_cast<unsigned char*>(reinterpret_cast<std::uintptr_t>(address.address) ^ 64);
#endif
    return address;
  }
};

/// visit(std::integral_constant<int, i>) for i < kCount: a loop whose index is a constant.
template <int kCount, class Visit>
__device__ void for_each_constant(Visit visit) {
  [&]<int... kI>(std::integer_sequence<int, kI...>) {
    (visit(std::integral_constant<int, kI>()), ...);
  }(std::make_integer_sequence<int, kCount>());
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
