// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/simulated_gpu/units/element.h"
#include "kernels/simulated_gpu/units/half.h"
#include "kernels/simulated_gpu/units/product.h"
#include "kernels/simulated_gpu/units/swizzle.h"

namespace gradring::simulated_gpu {

/// Where wgmma finds a matrix in shared memory.
///
/// Source    PTX ISA 9.0: 9.7.15.5.1.2.2 Matrix Descriptor Format; CUTLASS 4.2, include/cute/arch/mma_sm90_desc.hpp.
struct MatrixDescriptor {
  std::uint32_t start = 0;          ///< address in shared memory: bits 0-13, in 16 bytes
  std::uint32_t leading_bytes = 0;  ///< "leading dimension byte offset": bits 16-29, in 16 bytes
  std::uint32_t stride_bytes = 0;   ///< "stride dimension byte offset": bits 32-45, in 16 bytes
  std::uint32_t base_offset = 0;    ///< bits 49-51
  Swizzle swizzle = Swizzle::none;  ///< bits 62-63: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes

  /// Errors    Fault if a bit is set that PTX ISA does not define.
  static MatrixDescriptor decode(std::uint64_t bits);
};

/// Which elements of an operand of 16-bit elements lie together: along k (imm-trans 0), or along m of A, n of B
/// (imm-trans 1).
enum class Major : std::uint8_t { k, mn };

/// Pieces of 16 bytes, eight elements each, of `extent` rows (m) of A or columns (n) of B of 16 elements (k) each.
constexpr std::size_t chunks_of(int extent) { return static_cast<std::size_t>(extent) * 2; }

/// The addresses in shared memory of the chunks_of(extent) pieces of an operand of m64nNk16, for m or n in [first,
/// first + extent). The machine checks them; nothing wraps around at the end of shared memory.
///
/// Shapes    first and extent are multiples of 8.
/// Order     Major::k: two pieces (k = 0, k = 8) for each row or column. Major::mn: extent / 8 pieces for each k.
/// Layout    in pieces, LBO and SBO being leading_bytes and stride_bytes, W = chunks_in_row(swizzle), before
///           swizzled():
///             k,  none      (mn % 8) + (mn / 8) SBO + (k / 8) LBO
///             k,  swizzled  (mn % 8) W + (mn / 8) SBO + (k / 8)                       LBO is not used
///             mn, none      (k % 8) + (k / 8) LBO + (mn / 8) SBO
///             mn, swizzled  (k % 8) W + (k / 8) SBO + (mn / 8 % W) + (mn / 8 / W) LBO
/// Source    PTX ISA 9.0: 9.7.15.5.1.2 Shared Memory Matrix Layout and its sections on strides; CUTLASS 4.2,
///           include/cute/atom/mma_traits_sm90_gmma.hpp: the canonical layouts above make_gmma_desc.
void chunk_addresses(const MatrixDescriptor& descriptor, Major major, int first, int extent,
                     std::span<std::uint32_t> addresses);

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

/// Of tf32, e4m3 and e5m2, which are K-major: the columns of A, or rows of B, from k0 on, 16 or as many as there are.
/// The pieces of a row of A or column of B are two, of 256 bits.
void read_elements(Element element, bool negates, std::span<const Chunk> chunks, int k0, LeftMatrix& a);
void read_elements(Element element, bool negates, std::span<const Chunk> chunks, int k0, RightMatrix& b);

/// D = A B + D of s8 and u8, for 16 rows: A from four registers, or else from pieces.
void wgmma_integers(Element type_a, Element type_b, std::span<const ConstRow> a, std::span<const Chunk> chunks_a,
                    std::span<const Chunk> chunks_b, bool keeps, bool saturates, std::span<const Row> d);

}  // namespace gradring::simulated_gpu
