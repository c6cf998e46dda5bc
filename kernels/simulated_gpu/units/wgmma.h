// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "kernels/simulated_gpu/units/half.h"
#include "kernels/simulated_gpu/units/matrix_descriptor.h"
#include "kernels/simulated_gpu/units/product.h"

namespace gradring::simulated_gpu {

// wgmma.mma_async.sync.aligned.m64nNk16.f32.<type>.<type>, in three steps, so that the machine can check and count what
// is read of shared memory, and read B once for the four warps of a warpgroup:
//
//   addresses  chunk_addresses() of A for rows 16 w to 16 w + 15 of warp w, of B for all N columns
//   matrices   read_chunks() from the pieces at these addresses; A also by read_fragment() from registers
//   product    multiply_add() with keeps = scale-d; D: N / 2 registers
//
// imm-scale-a and imm-scale-b of -1 negate: `negates`.

/// A piece of shared memory at an address of chunk_addresses().
using Chunk = std::array<std::byte, kChunkBytes>;

/// N of m64nNk16 with f16 or bf16: multiples of 8 from 8 to 256.
///
/// Source    PTX ISA 9.0: 9.7.15.2 Matrix Shape.
constexpr bool is_wgmma_width(int columns) { return columns >= 8 && columns <= kMostColumns && columns % 8 == 0; }

/// The rows of one warp of A, from chunks_of(16) pieces in the order of chunk_addresses().
void read_chunks(Half type, Major major, bool negates, std::span<const Chunk> chunks, LeftMatrix& a);

/// B of `columns` columns, from chunks_of(columns) pieces in the order of chunk_addresses().
void read_chunks(Half type, Major major, bool negates, int columns, std::span<const Chunk> chunks, RightMatrix& b);

}  // namespace gradring::simulated_gpu
