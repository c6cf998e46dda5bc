// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/tensor_map.h"

#include <algorithm>
#include <bit>
#include <cstddef>
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
    {"BFLOAT16", 2, true, false},    {"FLOAT32_FTZ", 4, true, true}, {"TFLOAT32", 4, true, false},
    {"TFLOAT32_FTZ", 4, true, true},
};

constexpr std::uint64_t kMark = 0x50414D524F534E54;  // "TNSORMAP"

/// What we write into a CUtensorMap. CUTLASS clears bit 21 of the second word, for a defect of some drivers
/// (cute/atom/copy_traits_sm90_tma.hpp): `cleared` has it.
struct Encoded {
  std::uint64_t mark = kMark;
  std::uint8_t data_type = 0;
  std::uint8_t rank = 0;
  std::uint8_t cleared = 0;
  std::uint8_t interleave = 0;
  std::uint8_t swizzle = 0;
  std::uint8_t promotion = 0;
  std::uint8_t fill = 0;
  std::uint8_t element_strides[kMostTensorDimensions] = {};
  std::uint8_t unused_bytes[4] = {};
  std::uint64_t address = 0;
  std::uint64_t strides_bytes[kMostTensorDimensions - 1] = {};
  std::uint32_t last_elements[kMostTensorDimensions] = {};  ///< sizes less 1: a size may be 2^32
  std::uint16_t box[kMostTensorDimensions] = {};
  std::uint16_t unused[13] = {};
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Encoded) == kTensorMapBytes && offsetof(Encoded, cleared) == 8 + 21 / 8);

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

/// A rule, and the value of the argument that breaks it if it is broken.
struct Rule {
  bool is_broken;
  std::string_view argument;
  std::uint64_t value;
  std::string rule;
};

std::string broken_scalar_rule(const TensorMapArguments& a) {
  if (a.tensor_map == nullptr || a.sizes == nullptr || a.box == nullptr || a.element_strides == nullptr ||
      (a.rank > 1 && a.strides_bytes == nullptr))
    return "a pointer is null";
  const auto map = std::bit_cast<std::uintptr_t>(a.tensor_map);
  const bool is_type = a.data_type < std::size(kElementTypes);
  const std::uint64_t alignment = a.interleave == 2 ? 32 : 16;
  const Rule rules[] = {
      {map % 64 != 0, "tensorMap", map, "its address is not a multiple of 64"},
      {!is_type, "tensorDataType", a.data_type, "no type of compute capability 9.0"},
      {a.interleave > 2, "interleave", a.interleave, "none (0), 16 bytes (1) or 32 bytes (2)"},
      {a.rank < 1 || a.rank > kMostTensorDimensions, "tensorRank", a.rank, "1 to 5"},
      {a.interleave != 0 && a.rank < 3, "tensorRank", a.rank, "at least 3 for an interleaved layout"},
      {a.swizzle > 3, "swizzle", a.swizzle, "none (0), 32, 64 or 128 bytes (1 to 3) on compute capability 9.0"},
      {a.interleave == 2 && a.swizzle != 1, "swizzle", a.swizzle, "32 bytes (1) for a layout interleaved by 32 bytes"},
      {a.promotion > 3, "l2Promotion", a.promotion, "0 to 3"},
      {a.fill > 1, "oobFill", a.fill, "zeros (0) or NaN (1)"},
      {a.fill == 1 && is_type && !kElementTypes[a.data_type].is_float, "oobFill", a.fill,
       "NaN (1) is for floating-point types"},
      {a.address % alignment != 0, "globalAddress", a.address, joined("not a multiple of ", alignment)},
  };
  const auto* const broken = std::ranges::find(rules, true, &Rule::is_broken);
  return broken == std::end(rules) ? "" : broken_rule(broken->argument, -1, broken->value, broken->rule);
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
      return broken_rule("globalStrides", i, stride, joined("not a multiple of ", multiple, " bytes"));
    }
    if (stride >= std::uint64_t{1} << 40) return broken_rule("globalStrides", i, stride, "less than 2^40 bytes");
  }
  if (a.interleave != 0) return {};
  const std::uint64_t row_bytes = std::uint64_t{a.box[0]} * kElementTypes[a.data_type].bytes;
  if (row_bytes % 16 != 0) {
    return broken_rule("boxDim", 0, a.box[0], joined(row_bytes, " bytes, which is not a multiple of 16"));
  }
  const std::uint64_t span = 16U << a.swizzle;
  if (a.swizzle != 0 && row_bytes > span) {
    return broken_rule("boxDim", 0, a.box[0], joined(row_bytes, " bytes, more than the ", span, " of the swizzle"));
  }
  return {};
}

/// One row of the box: `begin` and `end` are the bytes of it that are inside the tensor, `global` where byte 0 is or
/// would be.
struct BoxRow {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::uint64_t global = 0;
};

/// `row` counts the rows of the box, the second dimension fastest.
BoxRow row_of(const TensorMap& map, std::span<const std::int32_t> coordinates, std::uint32_t row) {
  BoxRow found{.global = map.address};
  bool is_inside = true;
  for (unsigned i = 1; i < map.rank; ++i) {
    const std::int64_t position = coordinates[i] + std::int64_t{row % map.counts[i]} * map.steps[i];
    row /= map.counts[i];
    is_inside = is_inside && position >= 0 && position < static_cast<std::int64_t>(map.sizes[i]);
    found.global += static_cast<std::uint64_t>(position) * map.strides_bytes[i];
  }
  const std::int64_t first = coordinates[0];
  found.global += static_cast<std::uint64_t>(first) * map.element_bytes;  // modulo 2^64: `first` may be negative
  if (!is_inside) return found;
  const std::int64_t last = std::min<std::int64_t>(map.counts[0], static_cast<std::int64_t>(map.sizes[0]) - first);
  found.begin = std::max<std::int64_t>(0, -first) * map.element_bytes;
  found.end = std::max(found.begin, last * map.element_bytes);
  return found;
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
    throw Fault(joined("tensor map has type ", type.name, ", whose copies change values, which is not simulated"));
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
    throw Fault(joined("tensor map has rows of ", map.row_bytes(), " bytes in a swizzle of ",
                       chunks_in_row(map.swizzle) * kChunkBytes, " bytes, which is not simulated: make them equal"));
  }
  return map;
}

std::uint32_t TensorMap::box_bytes() const {
  std::uint32_t bytes = element_bytes;
  for (unsigned i = 0; i < rank; ++i) bytes *= counts[i];
  return bytes;
}

void box_chunks(const TensorMap& map, std::span<const std::int32_t> coordinates, std::uint32_t shared_address,
                std::vector<BoxChunk>& chunks) {
  if (coordinates.size() != map.rank) {
    throw Fault(joined("tensor copy has ", coordinates.size(), " coordinates, and its tensor map has rank ", map.rank));
  }
  if (shared_address % kBoxAlignment != 0) {
    throw Fault(
        joined("tensor copy has address ", shared_address, " of shared memory, which is not a multiple of 128"));
  }
  chunks.clear();
  chunks.reserve(map.box_bytes() / kChunkBytes);
  const std::uint32_t rows = map.box_bytes() / map.row_bytes();
  const std::int64_t row_bytes = map.row_bytes();
  std::uint32_t address = shared_address;
  for (std::uint32_t row = 0; row < rows; ++row) {
    const BoxRow source = row_of(map, coordinates, row);
    for (std::int64_t byte = 0; byte < row_bytes; byte += kChunkBytes, address += kChunkBytes) {
      const std::int64_t begin = std::clamp<std::int64_t>(source.begin - byte, 0, kChunkBytes);
      const std::int64_t end = std::clamp<std::int64_t>(source.end - byte, begin, kChunkBytes);
      BoxChunk chunk{.shared = swizzled(map.swizzle, address)};
      if (begin < end) {
        chunk.first = static_cast<std::uint8_t>(begin);
        chunk.bytes = static_cast<std::uint8_t>(end - begin);
        chunk.global = source.global + static_cast<std::uint64_t>(byte + begin);
      }
      chunks.push_back(chunk);
    }
  }
}

}  // namespace gradring::simulated_gpu
