// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/tensor_map.h"

#include <bit>
#include <cstring>
#include <span>
#include <string_view>

#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {
namespace {

/// CUtensorMapDataType.
struct ElementType {
  std::string_view name;
  std::uint8_t bytes;
  bool is_float;
  bool changes_values;  ///< in the copy
};
constexpr ElementType kElementTypes[] = {
    {"UINT8", 1, false, false},      {"UINT16", 2, false, false},    {"UINT32", 4, false, false},
    {"INT32", 4, false, false},      {"UINT64", 8, false, false},    {"INT64", 8, false, false},
    {"FLOAT16", 2, true, false},     {"FLOAT32", 4, true, false},    {"FLOAT64", 8, true, false},
    {"BFLOAT16", 2, true, false},    {"FLOAT32_FTZ", 4, true, true}, {"TFLOAT32", 4, true, true},
    {"TFLOAT32_FTZ", 4, true, true},
};

constexpr std::uint64_t kMark = 0x50414D524F534E54;  // "TNSORMAP"

/// What we write into a CUtensorMap.
struct Encoded {
  std::uint64_t mark = kMark;
  std::uint64_t address = 0;
  std::uint64_t strides_bytes[kMostTensorDimensions - 1] = {};
  std::uint32_t last_elements[kMostTensorDimensions] = {};  ///< sizes less 1: a size may be 2^32
  std::uint16_t box[kMostTensorDimensions] = {};
  std::uint8_t element_strides[kMostTensorDimensions] = {};
  std::uint8_t data_type = 0;
  std::uint8_t rank = 0;
  std::uint8_t interleave = 0;
  std::uint8_t swizzle = 0;
  std::uint8_t promotion = 0;
  std::uint8_t fill = 0;
  std::uint8_t unused[31] = {};
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Encoded) == kTensorMapBytes);

/// FNV-1a of all bytes before the checksum.
std::uint64_t checksum_of(const Encoded& encoded) {
  std::uint64_t sum = 0xCBF29CE484222325;
  for (const auto byte : std::span(reinterpret_cast<const unsigned char*>(&encoded), offsetof(Encoded, checksum))) {
    sum = (sum ^ byte) * 0x100000001B3;
  }
  return sum;
}

/// "boxDim[0] is 264: at most 256"
std::string broken_rule(std::string_view argument, int index, std::uint64_t value, std::string_view rule) {
  std::string text(argument);
  if (index >= 0) text += "[" + std::to_string(index) + "]";
  return text + " is " + std::to_string(value) + ": " + std::string(rule);
}

std::string broken_scalar_rule(const TensorMapArguments& a) {
  if (a.tensor_map == nullptr || a.sizes == nullptr || a.box == nullptr || a.element_strides == nullptr ||
      (a.rank > 1 && a.strides_bytes == nullptr)) {
    return "a pointer is null";
  }
  if (std::bit_cast<std::uintptr_t>(a.tensor_map) % 64 != 0) {
    return broken_rule("tensorMap", -1, std::bit_cast<std::uintptr_t>(a.tensor_map),
                       "its address is not a multiple of 64");
  }
  if (a.data_type >= std::size(kElementTypes)) {
    return broken_rule("tensorDataType", -1, a.data_type, "no type of compute capability 9.0");
  }
  if (a.interleave > 2) return broken_rule("interleave", -1, a.interleave, "none (0), 16 bytes (1) or 32 bytes (2)");
  if (a.rank < 1 || a.rank > kMostTensorDimensions) return broken_rule("tensorRank", -1, a.rank, "1 to 5");
  if (a.interleave != 0 && a.rank < 3)
    return broken_rule("tensorRank", -1, a.rank, "at least 3 for an interleaved layout");
  if (a.swizzle > 3)
    return broken_rule("swizzle", -1, a.swizzle, "none (0), 32, 64 or 128 bytes (1 to 3) on compute capability 9.0");
  if (a.interleave == 2 && a.swizzle != 1) {
    return broken_rule("swizzle", -1, a.swizzle, "32 bytes (1) for a layout interleaved by 32 bytes");
  }
  if (a.promotion > 3) return broken_rule("l2Promotion", -1, a.promotion, "0 to 3");
  if (a.fill > 1) return broken_rule("oobFill", -1, a.fill, "zeros (0) or NaN (1)");
  if (a.fill == 1 && !kElementTypes[a.data_type].is_float)
    return broken_rule("oobFill", -1, a.fill, "NaN (1) is for floating-point types");
  const std::uint64_t alignment = a.interleave == 2 ? 32 : 16;
  if (a.address % alignment != 0) {
    return broken_rule("globalAddress", -1, a.address, "not a multiple of " + std::to_string(alignment));
  }
  return {};
}

std::string broken_array_rule(const TensorMapArguments& a) {
  for (int i = 0; i < static_cast<int>(a.rank); ++i) {
    if (a.sizes[i] < 1 || a.sizes[i] > std::uint64_t{1} << 32)
      return broken_rule("globalDim", i, a.sizes[i], "1 to 2^32");
    if (a.box[i] < 1 || a.box[i] > 256) return broken_rule("boxDim", i, a.box[i], "1 to 256");
    const bool is_ignored = i == 0 && a.interleave == 0;
    if (!is_ignored && (a.element_strides[i] < 1 || a.element_strides[i] > 8)) {
      return broken_rule("elementStrides", i, a.element_strides[i], "1 to 8");
    }
  }
  const std::uint64_t multiple = a.interleave == 2 ? 32 : 16;
  for (int i = 0; i + 1 < static_cast<int>(a.rank); ++i) {
    const std::uint64_t stride = a.strides_bytes[i];
    if (stride % multiple != 0) {
      return broken_rule("globalStrides", i, stride, "not a multiple of " + std::to_string(multiple) + " bytes");
    }
    if (stride >= std::uint64_t{1} << 40) return broken_rule("globalStrides", i, stride, "less than 2^40 bytes");
  }
  if (a.interleave != 0) return {};
  const std::uint64_t row_bytes = std::uint64_t{a.box[0]} * kElementTypes[a.data_type].bytes;
  if (row_bytes % 16 != 0) {
    return broken_rule("boxDim", 0, a.box[0], std::to_string(row_bytes) + " bytes, which is not a multiple of 16");
  }
  const std::uint64_t span = 16U << a.swizzle;
  if (a.swizzle != 0 && row_bytes > span) {
    return broken_rule("boxDim", 0, a.box[0],
                       std::to_string(row_bytes) + " bytes, more than the " + std::to_string(span) + " of the swizzle");
  }
  return {};
}

}  // namespace

TensorMapResult encode_tensor_map(const TensorMapArguments& a) {
  std::string reason = broken_scalar_rule(a);
  if (reason.empty()) reason = broken_array_rule(a);
  if (!reason.empty()) return {.code = TensorMapResult::kInvalidValue, .reason = "cuTensorMapEncodeTiled: " + reason};

  Encoded encoded;
  encoded.address = a.address;
  for (unsigned i = 0; i < a.rank; ++i) {
    encoded.last_elements[i] = static_cast<std::uint32_t>(a.sizes[i] - 1);
    encoded.box[i] = static_cast<std::uint16_t>(a.box[i]);
    const bool is_ignored = i == 0 && a.interleave == 0;
    encoded.element_strides[i] = is_ignored ? 1 : static_cast<std::uint8_t>(a.element_strides[i]);
    if (i + 1 < a.rank) encoded.strides_bytes[i] = a.strides_bytes[i];
  }
  encoded.data_type = static_cast<std::uint8_t>(a.data_type);
  encoded.rank = static_cast<std::uint8_t>(a.rank);
  encoded.interleave = static_cast<std::uint8_t>(a.interleave);
  encoded.swizzle = static_cast<std::uint8_t>(a.swizzle);
  encoded.promotion = static_cast<std::uint8_t>(a.promotion);
  encoded.fill = static_cast<std::uint8_t>(a.fill);
  encoded.checksum = checksum_of(encoded);
  std::memcpy(a.tensor_map, &encoded, sizeof(encoded));
  return {};
}

TensorMap TensorMap::decode(const void* bytes) {
  Encoded encoded;
  std::memcpy(&encoded, bytes, sizeof(encoded));
  if (encoded.mark != kMark || encoded.checksum != checksum_of(encoded)) {
    throw Fault("tensor map is not what cuTensorMapEncodeTiled wrote: pass it as a __grid_constant__ parameter, whole");
  }
  const ElementType& type = kElementTypes[encoded.data_type];
  if (encoded.interleave != 0) throw Fault("tensor map has an interleaved layout, which is not simulated");
  if (encoded.fill != 0) throw Fault("tensor map fills with NaN outside of the tensor, which is not simulated");
  if (type.changes_values) {
    throw Fault("tensor map has type " + std::string(type.name) +
                ", whose copies change values, which is not simulated");
  }
  TensorMap map;
  map.address = encoded.address;
  map.element_bytes = type.bytes;
  map.rank = encoded.rank;
  map.swizzle = static_cast<Swizzle>(encoded.swizzle);
  for (unsigned i = 0; i < map.rank; ++i) {
    map.sizes[i] = std::uint64_t{encoded.last_elements[i]} + 1;
    map.strides_bytes[i] = i == 0 ? type.bytes : encoded.strides_bytes[i - 1];
    map.steps[i] = encoded.element_strides[i];
    map.counts[i] = (encoded.box[i] + map.steps[i] - 1) / map.steps[i];
  }
  if (map.swizzle != Swizzle::none && map.row_bytes() != chunks_in_row(map.swizzle) * kChunkBytes) {
    throw Fault("tensor map has rows of " + std::to_string(map.row_bytes()) + " bytes in a swizzle of " +
                std::to_string(chunks_in_row(map.swizzle) * kChunkBytes) +
                " bytes, which is not simulated: make them equal");
  }
  return map;
}

std::uint32_t TensorMap::box_bytes() const {
  std::uint32_t bytes = element_bytes;
  for (unsigned i = 0; i < rank; ++i) bytes *= counts[i];
  return bytes;
}

}  // namespace gradring::simulated_gpu
