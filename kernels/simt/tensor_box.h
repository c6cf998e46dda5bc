// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gradring::simt {

/// What the address of a matrix, the length of its rows in bytes and the length of a box's must be multiples of.
inline constexpr int kTensorAlignment = 16;
/// The same of a box's place in shared memory.
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
