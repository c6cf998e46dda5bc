// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gradring::kernels {

/// IEEE 754 binary16 as stored in memory, for host code. Arithmetic goes through float.
struct Half {
  std::uint16_t bits = 0;
};

/// The upper half of a binary32, as stored in memory, for host code. Arithmetic goes through float.
struct BFloat16 {
  std::uint16_t bits = 0;
};

// The conversions choose between results instead of branching, so that compilers make vector code of loops over them.

/// Rounds to nearest, ties to even; overflow gives infinity, NaN stays NaN (quiet).
constexpr Half to_half(float value) {
  const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = word >> 16 & 0x8000u;
  const std::uint32_t magnitude = word & 0x7fffffffu;
  const bool small = magnitude < 0x38800000u;  // below 2^-14: the FPU rounds at the subnormals' fixed exponent
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(small ? magnitude : 0u) + 0.5f) - 0x3f000000u;
  const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  std::uint32_t rounded = small ? subnormal : normal;
  rounded = magnitude >= 0x477ff000u ? 0x7c00u : rounded;  // 65520, the first value that rounds past 65504
  rounded = magnitude > 0x7f800000u ? 0x7e00u : rounded;
  return Half{static_cast<std::uint16_t>(sign | rounded)};
}

constexpr float to_float(Half value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
  const std::uint32_t shifted = static_cast<std::uint32_t>(value.bits & 0x7fffu) << 13;
  // The exponent's bias grows by 112; that of infinity and NaN goes to the top.
  const std::uint32_t normal = shifted + 0x38000000u + (shifted >= 0x0f800000u ? 0x38000000u : 0u);
  const float subnormal = std::bit_cast<float>(shifted + 0x38800000u) - 0x1p-14f;  // exact
  return std::bit_cast<float>(sign | (shifted < 0x00800000u ? std::bit_cast<std::uint32_t>(subnormal) : normal));
}

/// Rounds to nearest, ties to even; NaN stays NaN (quiet).
constexpr BFloat16 to_bfloat16(float value) {
  const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
  if ((word & 0x7fffffffu) > 0x7f800000u) return BFloat16{static_cast<std::uint16_t>(word >> 16 | 0x40u)};
  return BFloat16{static_cast<std::uint16_t>((word + 0x7fffu + (word >> 16 & 1u)) >> 16)};
}

constexpr float to_float(BFloat16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

/// The element types that kernels read and write.
enum class DType : std::uint8_t { f32, f16, bf16, i32, i64, u8 };

/// Size of one element, in bytes.
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
    case DType::i64: return 8;
    case DType::u8: return 1;
  }
  return 0;
}

/// The name that users type and read: "f32", "f16", ...
constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::u8: return "u8";
  }
  return "?";
}

/// The inverse of name_of; empty if there is no such type.
constexpr std::optional<DType> parse_dtype(std::string_view name) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8})
    if (name_of(dtype) == name) return dtype;
  return std::nullopt;
}

template <class T>
struct NoDType;

/// The DType of a host type: dtype_of<float> is DType::f32. One of another type does not compile.
template <class T>
inline constexpr DType dtype_of = NoDType<T>::value;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<Half> = DType::f16;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;

}  // namespace gradring::kernels
