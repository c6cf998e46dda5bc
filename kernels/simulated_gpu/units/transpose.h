// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

namespace gradring::simulated_gpu {

/// Eight elements of 16 bits: a row of a matrix that ldmatrix moves, or of a core matrix of wgmma.
using Elements = std::uint16_t __attribute__((vector_size(16)));

/// Transposes 8 x 8 elements in place. Each of three rounds rotates the six bits of an element's place (three of its row,
/// three of its column) by one.
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
