// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gradring::simt {

/// Of an element in a tile.
struct Position {
  int row, column;
};

// The tiles of mma.sync.m16n8k16 with 16-bit inputs, as the 32 lanes of a warp hold them: where the i-th element of a
// lane is. Two elements of a or b make a register, the first in its lower half.
// Source: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".

/// a, [16 rows, 16 k]: 8 elements a lane.
constexpr Position mma_position_in_a(int lane, int i) {
  return {lane / 4 + i / 2 % 2 * 8, lane % 4 * 2 + i % 2 + i / 4 * 8};
}

/// b, [16 k, 8 columns]: 4 elements a lane.
constexpr Position mma_position_in_b(int lane, int i) { return {lane % 4 * 2 + i % 2 + i / 2 * 8, lane / 4}; }

/// c, [16 rows, 8 columns]: 4 numbers a lane, two pairs of neighbours.
constexpr Position mma_position_in_c(int lane, int i) { return {lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2}; }

// The four 8 x 8 matrices of a 16 x 16 tile, in the order in which ldmatrix .x4 fills registers: which row of which
// matrix lane l points at, as the position of its first element.

/// 0 top left, 1 below it, 2 top right, 3 below that.
constexpr Position matrices_down(int lane) { return {lane % 16, lane / 16 * 8}; }

/// 0 top left, 1 at its right, 2 bottom left, 3 at its right.
constexpr Position matrices_across(int lane) { return {lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8}; }

// What the tensor cores of sm_90 read from shared memory, and how a warpgroup holds what they make of it.
// Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout" and "Register Fragments".

/// The bits of an address in shared memory that a descriptor can name.
inline constexpr std::uint32_t kSharedAddressMask = 0x3ffff;

/// Rows of 128 bytes, eight of them a pattern of 1,024: the eight 16-byte vectors of row r are stored in the order
/// XORed with r. Addresses count from the beginning of shared memory, so a pattern begins at a multiple of its size.
inline constexpr std::uint32_t kSwizzledRowBytes = 128;
inline constexpr std::uint32_t kSwizzlePatternBytes = 1024;
constexpr std::uint32_t swizzle_128(std::uint32_t address) { return address ^ (address >> 7 & 7) << 4; }

/// The words of 16 bits of a row of 128 bytes.
inline constexpr int kSwizzledRowWords = 64;

/// An operand of wgmma in shared memory: K-major, or transposed, which is M-major (a) or N-major (b); "mn" is the index
/// along M or N. Swizzled by 128 bytes:
///
///                a row holds    rows of a pattern    stride_bytes to    leading_bytes to
///   K-major      64 of K        8 of mn              the next 8 of mn   (ignored)
///   transposed   64 of mn       8 of K               the next 8 of K    the next 64 of mn
///
/// Without a swizzle it is made of cores, eight vectors of 16 bytes one after the other, that begin at any multiple of
/// 16 bytes. So where vectors lie as pixels do, a window of them can begin at each:
///
///                a vector holds    vectors of a core    stride_bytes to    leading_bytes to
///   K-major      8 of K            8 of mn              the next 8 of mn   the next 8 of K
///   transposed   8 of mn           8 of K               the next 8 of mn   the next 8 of K
struct MatrixDescriptor {
  std::uint64_t bits = 0;

  static constexpr MatrixDescriptor of(std::uint32_t address, std::uint32_t leading_bytes, std::uint32_t stride_bytes) {
    constexpr std::uint64_t kSwizzle128 = 1;
    return {field(address) | field(leading_bytes) << 16 | field(stride_bytes) << 32 | kSwizzle128 << 62};
  }
  static constexpr MatrixDescriptor without_swizzle(std::uint32_t address, std::uint32_t leading_bytes,
                                                    std::uint32_t stride_bytes) {
    return {field(address) | field(leading_bytes) << 16 | field(stride_bytes) << 32};
  }

  /// The operand so many vectors of 16 bytes later, 0 or more.
  constexpr MatrixDescriptor after(int vectors) const { return {bits + static_cast<std::uint32_t>(vectors)}; }

  /// The same operand so many bytes later, a multiple of 16.
  constexpr MatrixDescriptor advanced(std::uint32_t bytes) const { return {bits + (bytes >> 4)}; }

  constexpr std::uint32_t address() const { return bytes_at(0); }
  constexpr std::uint32_t leading_bytes() const { return bytes_at(16); }
  constexpr std::uint32_t stride_bytes() const { return bytes_at(32); }
  constexpr unsigned base_offset() const { return bits >> 49 & 7; }
  constexpr unsigned swizzle_mode() const { return bits >> 62 & 3; }  // 0: none, 1: 128 bytes

  /// Of an element of 16 bits.
  constexpr std::uint32_t address_of(bool transposed, int mn, int k) const {
    if (swizzle_mode() == 0) {
      const int vector = transposed ? k % 8 : mn % 8;
      const int in_vector = transposed ? mn % 8 : k % 8;
      return address() + static_cast<std::uint32_t>(mn) / 8 * stride_bytes() +
             static_cast<std::uint32_t>(k) / 8 * leading_bytes() +
             static_cast<std::uint32_t>(16 * vector + 2 * in_vector);
    }
    const auto row = static_cast<std::uint32_t>(transposed ? k : mn);
    const auto column = static_cast<std::uint32_t>(transposed ? mn : k);
    const std::uint32_t wide = transposed ? column / kSwizzledRowWords * leading_bytes() : 0;
    const std::uint32_t in_row = (transposed ? column % kSwizzledRowWords : column) * 2;
    return swizzle_128(address() + wide + row / 8 * stride_bytes() + row % 8 * kSwizzledRowBytes + in_row);
  }

 private:
  static constexpr std::uint64_t field(std::uint32_t bytes) { return (bytes & kSharedAddressMask) >> 4; }
  constexpr std::uint32_t bytes_at(int bit) const { return static_cast<std::uint32_t>(bits >> bit & 0x3fff) << 4; }
};

/// The sums of wgmma.m64nNk16, [64 rows, N columns]: where the i-th of the N / 2 numbers of a thread is. Warps have
/// 16 rows each, as N / 8 fragments of mma.sync side by side.
constexpr Position warpgroup_position_in_d(int thread, int i) {
  const Position position = mma_position_in_c(thread % 32, i % 4);
  return {thread / 32 * 16 + position.row, i / 4 * 8 + position.column};
}

/// What the address of a matrix, the length of its rows in bytes and the length of a box's must be multiples of.
inline constexpr int kTensorAlignment = 16;
/// The same of a box's address in shared memory.
inline constexpr int kSharedAlignmentOfBoxes = 128;

/// A matrix of 16-bit elements, row-major and contiguous, and the boxes in which it is copied to shared memory.
struct TensorBox {
  static constexpr int kBoxColumns = 64;  // 128 bytes

  const void* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  int box_rows = 0;  ///< at most 256

  /// What one copy brings, also where it reaches past the matrix.
  constexpr int box_bytes() const { return box_rows * kBoxColumns * 2; }
};

}  // namespace gradring::simt
