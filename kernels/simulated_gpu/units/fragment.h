// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

namespace gradring::simulated_gpu {

/// Threads of a warp.
inline constexpr int kLanes = 32;

/// A 32-bit register of all lanes of a warp: kLanes values. An f32 is there as its bits; two 16-bit elements with the
/// lower index in the lower half.
using Row = std::uint32_t*;
using ConstRow = const std::uint32_t*;

/// A position in a matrix.
struct Position {
  int row = 0;
  int column = 0;

  bool operator==(const Position&) const = default;
};

// Fragments: which element of a matrix a lane holds as its element i. Registers hold elements in order of i: two of 16
// bits each, or one of f32. Names as in PTX ISA: groupID = lane / 4, threadID_in_group = lane % 4.

/// Of A, 16 x 16 elements of 16 bits in 4 registers (i < 8); 16 x 8 in the first two of them (i < 4). Of the 64 rows of
/// wgmma, warp w of the warpgroup holds rows 16 w and following in the same way.
///
/// Source    PTX ISA 9.0: 9.7.14.5.7 (m16n8k8), 9.7.14.5.8 (m16n8k16), 9.7.15.5.1.1.1 (m64nNk16).
constexpr Position position_in_a(int lane, int i) {
  return {.row = lane / 4 + (i / 2 % 2) * 8, .column = lane % 4 * 2 + i % 2 + i / 4 * 8};
}

/// Of B, 16 x 8 elements of 16 bits in 2 registers (i < 4); 8 x 8 in the first of them (i < 2). The row is k.
///
/// Source    PTX ISA 9.0: 9.7.14.5.7 (m16n8k8), 9.7.14.5.8 (m16n8k16).
constexpr Position position_in_b(int lane, int i) {
  return {.row = lane % 4 * 2 + i % 2 + i / 2 * 8, .column = lane / 4};
}

/// Of C and D, 16 x N elements of f32 in N / 2 registers: one after the other, fragments of 16 x 8. Of the 64 rows of
/// wgmma, warp w holds rows 16 w and following.
///
/// Source    PTX ISA 9.0: 9.7.14.5.7, 9.7.14.5.8, 9.7.15.5.1.1.1.
constexpr Position position_in_accumulators(int lane, int i) {
  return {.row = lane / 4 + i / 2 % 2 * 8, .column = i / 4 * 8 + lane % 4 * 2 + i % 2};
}

/// Eight elements of 16 bits: a row of a matrix that ldmatrix moves, or of a core matrix of wgmma.
using Elements = std::uint16_t __attribute__((vector_size(16)));

/// Transposes 8 x 8 elements in place. Each of three rounds rotates the six bits of an element's index (three of its
/// row, three of its column) by one.
inline void transpose(Elements (&rows)[8]) {
  for (int round = 0; round < 3; ++round) {
    Elements next[8];
    for (int i = 0; i < 4; ++i) {
      next[2 * i] = __builtin_shufflevector(rows[i], rows[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    std::memcpy(rows, next, sizeof(next));
  }
}

}  // namespace gradring::simulated_gpu
