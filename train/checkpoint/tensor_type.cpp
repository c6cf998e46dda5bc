// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/tensor_type.h"

#include <algorithm>
#include <array>

namespace gradring::train {
namespace {

using enum TensorType;

constexpr std::array<TensorTypeNames, 22> kTypes = {{
    {boolean, 8, "BOOL", "|b1", "BoolStorage"},
    {f4, 4, "F4", "", ""},
    {f6_e2m3, 6, "F6_E2M3", "", ""},
    {f6_e3m2, 6, "F6_E3M2", "", ""},
    {u8, 8, "U8", "|u1", "ByteStorage"},
    {i8, 8, "I8", "|i1", "CharStorage"},
    {f8_e5m2, 8, "F8_E5M2", "", ""},
    {f8_e4m3, 8, "F8_E4M3", "", ""},
    {f8_e8m0, 8, "F8_E8M0", "", ""},
    {f8_e4m3fnuz, 8, "F8_E4M3FNUZ", "", ""},
    {f8_e5m2fnuz, 8, "F8_E5M2FNUZ", "", ""},
    {i16, 16, "I16", "<i2", "ShortStorage"},
    {u16, 16, "U16", "<u2", ""},
    {f16, 16, "F16", "<f2", "HalfStorage"},
    {bf16, 16, "BF16", "", "BFloat16Storage"},
    {i32, 32, "I32", "<i4", "IntStorage"},
    {u32, 32, "U32", "<u4", ""},
    {f32, 32, "F32", "<f4", "FloatStorage"},
    {c64, 64, "C64", "<c8", "ComplexFloatStorage"},
    {f64, 64, "F64", "<f8", "DoubleStorage"},
    {i64, 64, "I64", "<i8", "LongStorage"},
    {u64, 64, "U64", "<u8", ""},
}};

}  // namespace

std::span<const TensorTypeNames> tensor_types() { return kTypes; }

const TensorTypeNames& names_of(TensorType type) { return *std::ranges::find(kTypes, type, &TensorTypeNames::type); }

std::optional<TensorType> find_type(std::string_view TensorTypeNames::*format, std::string_view name) {
  const auto found = std::ranges::find(kTypes, name, format);
  if (name.empty() || found == kTypes.end()) return std::nullopt;
  return found->type;
}

}  // namespace gradring::train
