// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gradring::simulated_gpu {

/// How pieces of 16 bytes are permuted within rows of 32, 64 or 128 bytes of shared memory, so that a column of pieces
/// lies in different banks.
enum class Swizzle : std::uint8_t { none, bytes_32, bytes_64, bytes_128 };

/// Bytes of a permuted piece.
inline constexpr std::uint32_t kChunkBytes = 16;

/// Pieces in a row that a swizzle permutes: 1 (none), 2, 4 or 8.
constexpr std::uint32_t chunks_in_row(Swizzle swizzle) { return 1U << static_cast<unsigned>(swizzle); }

/// Where a byte lies that would be at `address` without swizzle.
///
/// The number of the piece is combined by exclusive or with the number of the 128-byte line, each modulo the pieces of
/// a row. Lines are counted from address 0 of shared memory, not from a matrix, so a matrix need not begin with the
/// pattern; `base_offset` is the line at which the pattern begins, if that is not a multiple of 8.
///
/// Source    PTX ISA 9.0: 5.5.7 Swizzling Modes, 9.7.15.5.1.2.2 Matrix Descriptor Format (base offset); CUTLASS 4.2,
///           include/cute/swizzle.hpp: Swizzle<0..3, 4, 3>; CUDA C++ Programming Guide 13.0, "TMA Swizzle" (the offset
///           of a buffer that is not aligned to the pattern).
constexpr std::uint32_t swizzled(Swizzle swizzle, std::uint32_t address, std::uint32_t base_offset = 0) {
  const std::uint32_t line = (address >> 7) - base_offset;
  return address ^ (line & (chunks_in_row(swizzle) - 1)) * kChunkBytes;
}

}  // namespace gradring::simulated_gpu
