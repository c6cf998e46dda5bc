// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/units/swizzle.h"

namespace gradring::simulated_gpu {

/// Bytes of a CUtensorMap, whose content is opaque. Ours holds the arguments, a mark and a checksum.
inline constexpr std::size_t kTensorMapBytes = 128;
inline constexpr unsigned kMostTensorDimensions = 5;

/// The arguments of cuTensorMapEncodeTiled. Enumerations have the driver's values (cuda.h of CUDA 13.0); arrays are the
/// caller's, with `rank` elements, strides_bytes with rank - 1.
struct TensorMapArguments {
  void* tensor_map = nullptr;
  unsigned data_type = 0;  ///< CUtensorMapDataType
  std::uint32_t rank = 0;
  std::uint64_t address = 0;
  const std::uint64_t* sizes = nullptr;          ///< globalDim: elements, the contiguous dimension first
  const std::uint64_t* strides_bytes = nullptr;  ///< globalStrides: of the dimensions from 1 on
  const std::uint32_t* box = nullptr;            ///< boxDim: elements
  const std::uint32_t* element_strides = nullptr;
  unsigned interleave = 0;  ///< CUtensorMapInterleave: 0 none, 1 16 bytes, 2 32 bytes
  unsigned swizzle = 0;     ///< CUtensorMapSwizzle: 0 none, 1 to 3: 32, 64, 128 bytes
  unsigned promotion = 0;   ///< CUtensorMapL2promotion: 0 to 3
  unsigned fill = 0;        ///< CUtensorMapFloatOOBfill: 0 zeros, 1 NaN
};

/// What the driver answers: a CUresult, and for people the rule that was broken.
struct TensorMapResult {
  static constexpr int kSuccess = 0;
  static constexpr int kInvalidValue = 1;  ///< CUDA_ERROR_INVALID_VALUE
  int code = kSuccess;
  std::string reason;
};

/// cuTensorMapEncodeTiled by its documented rules, for compute capability 9.0. What a driver may check beyond them is
/// not known. Types of packed 4 and 6 bits, and swizzles of atoms of 32 and 64 bytes, which compute capability 9.0
/// lacks, are invalid values.
///
/// Source    CUDA Driver API 13.0, 6.30 Tensor Map Object Management: cuTensorMapEncodeTiled.
TensorMapResult encode_tensor_map(const TensorMapArguments& arguments);

/// A tensor in global memory, the box of it that a copy moves, and how the box lies in shared memory.
struct TensorMap {
  std::uint64_t address = 0;
  std::uint32_t element_bytes = 0;
  unsigned rank = 0;
  std::array<std::uint64_t, kMostTensorDimensions> sizes{};          ///< elements
  std::array<std::uint64_t, kMostTensorDimensions> strides_bytes{};  ///< [0]: element_bytes
  std::array<std::uint32_t, kMostTensorDimensions>
      counts{};  ///< elements of the box: boxDim / elementStrides, rounded up
  std::array<std::uint32_t, kMostTensorDimensions> steps{};  ///< elements from one of the box to the next
  Swizzle swizzle = Swizzle::none;

  /// From the 128 bytes that encode_tensor_map wrote.
  ///
  /// Errors    Fault if these are not such bytes; if the map asks for what is not simulated here: interleaved layouts,
  ///           NaN outside of the tensor, types that are rounded or flushed in the copy (TF32, *_FTZ), or a swizzle
  ///           that is wider than the box, for which documents differ in how rows lie.
  static TensorMap decode(const void* bytes);

  /// Bytes of a row of the box in shared memory.
  std::uint32_t row_bytes() const { return counts[0] * element_bytes; }
  /// Bytes of the box in shared memory, those outside of the tensor included. A copy completes as many of its
  /// mbarrier's tx-count.
  std::uint32_t box_bytes() const;
};

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
