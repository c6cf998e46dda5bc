// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace gradring::simulated_gpu {

/// A 16-bit floating-point type of PTX.
///
/// Source    PTX ISA 9.0: 5.2.1 Fundamental Types (.f16), 5.2.3 Alternate Floating-Point Data Formats (.bf16).
enum class Half : std::uint8_t { f16, bf16 };

/// cvt.f32.f16: exact. A NaN becomes 0x7FFFFFFF, as in the host code of cuda_fp16.hpp (CUDA 13.0).
inline float f16_to_f32(std::uint16_t value) {
  // Without branches and in signed 32 bits, which is what loops over lanes are vectorised best from. No f32 here is
  // subnormal, so it does not matter whether the processor flushes these.
  constexpr std::int32_t kExponents = (127 - 15) << 23;  // from the bias of f16 to that of f32
  constexpr std::int32_t kInfinity = 0x1F << 23;         // of f16, moved to where f32 has it
  const std::int32_t magnitude = value & 0x7FFF;
  const std::int32_t moved = magnitude << 13;
  std::int32_t bits = moved + kExponents + (moved >= kInfinity ? kExponents : 0);
  const auto subnormal = std::bit_cast<std::int32_t>(static_cast<float>(magnitude) * 0x1p-24F);
  bits = moved < 1 << 23 ? subnormal : bits;
  const std::uint32_t sign = std::uint32_t{value} << 16 & 0x80000000;
  return std::bit_cast<float>(moved > kInfinity ? 0x7FFFFFFF : static_cast<std::uint32_t>(bits) | sign);
}

/// cvt.rn.f16.f32: to the nearest, ties to even; 65520 and more becomes infinity, subnormal results are kept, NaN is
/// 0x7FFF.
///
/// Source    PTX ISA 9.0: 9.7.9.21 cvt; canonical NaN as 9.7.4 (half precision) states it.
inline std::uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  // The last bit of 0.5 is worth 2^-24, as that of a subnormal f16: the addition rounds.
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000;
  const std::uint32_t rounded = (magnitude + 0xFFF + (magnitude >> 13 & 1) - (std::uint32_t{127 - 15} << 23)) >> 13;
  std::uint32_t result = rounded < 0x7C00 ? rounded : 0x7C00;
  result = magnitude < 0x38800000 ? subnormal : result;
  result |= bits >> 16 & 0x8000;
  return static_cast<std::uint16_t>(magnitude > 0x7F800000 ? 0x7FFF : result);
}

/// cvt.f32.bf16: exact; the bits of a NaN are kept.
inline float bf16_to_f32(std::uint16_t value) { return std::bit_cast<float>(std::uint32_t{value} << 16); }

/// cvt.rn.bf16.f32: to the nearest, ties to even; subnormal results are kept, NaN is 0x7FFF.
///
/// Source    PTX ISA 9.0: 9.7.9.21 cvt.
inline std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FFF : rounded);
}

inline float to_f32(Half type, std::uint16_t value) {
  return type == Half::f16 ? f16_to_f32(value) : bf16_to_f32(value);
}
inline std::uint16_t to_half(Half type, float value) {
  return type == Half::f16 ? f32_to_f16(value) : f32_to_bf16(value);
}

/// The same for arrays. `from` and `to` do not overlap.
void to_f32(Half type, const std::uint16_t* from, float* to, std::size_t elements);
void to_half(Half type, const float* from, std::uint16_t* to, std::size_t elements);

}  // namespace gradring::simulated_gpu
