// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/simulated_gpu/units/tensor_map.h"

namespace gradring::simulated_gpu {

/// 16 bytes of a box in shared memory, and which of them come from global memory; the others are zero.
struct BoxChunk {
  std::uint32_t shared = 0;  ///< address in shared memory
  std::uint8_t first = 0;    ///< the first byte that is inside the tensor
  std::uint8_t bytes = 0;    ///< how many are, 0 to 16
  std::uint64_t global = 0;  ///< address of these

  bool operator==(const BoxChunk&) const = default;
};

/// Multiple that a tiled copy wants of the address of its box in shared memory.
inline constexpr std::uint32_t kBoxAlignment = 128;

/// What cp.async.bulk.tensor.<rank>d.shared.global.tile copies: the box at `coordinates`, in pieces of 16 bytes in the
/// order of rows. The machine checks the accesses, moves the bytes and completes box_bytes() at the mbarrier.
///
/// The box lies in shared memory row by row without gaps, the first dimension contiguous, then swizzled(). Elements
/// outside of the tensor are zero: coordinates may be negative or past its end.
///
/// Shapes    coordinates: map.rank, in elements; chunks: replaced, map.box_bytes() / 16.
/// Errors    Fault if the number of coordinates is not the rank, or shared_address is not a multiple of kBoxAlignment.
/// Source    PTX ISA 9.0: 5.5.3 Tiled Mode (bounding box, traversal stride, out-of-boundary access), 5.5.7 Swizzling
///           Modes; the instruction cp.async.bulk.tensor.
void box_chunks(const TensorMap& map, std::span<const std::int32_t> coordinates, std::uint32_t shared_address,
                std::vector<BoxChunk>& chunks);

}  // namespace gradring::simulated_gpu
