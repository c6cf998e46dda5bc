// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace gradring::train {

/// The element types that files of tensors hold: safetensors knows them all, the other formats some.
enum class TensorType : std::uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64
};

/// What a type is called in each format; empty where the format has no such type.
struct TensorTypeNames {
  TensorType type;
  unsigned bits;                 ///< of one element
  std::string_view safetensors;  ///< "F32"
  std::string_view npy;          ///< "<f4"
  std::string_view torch;        ///< "FloatStorage"
};

/// All types, each once.
std::span<const TensorTypeNames> tensor_types();

const TensorTypeNames& names_of(TensorType type);

/// The type that `format` calls `name`: find_type(&TensorTypeNames::npy, "<f4") is f32. Empty if there is none.
std::optional<TensorType> find_type(std::string_view TensorTypeNames::*format, std::string_view name);

}  // namespace gradring::train
