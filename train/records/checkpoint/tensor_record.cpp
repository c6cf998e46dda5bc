// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/tensor_record.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "kernels/runtime/dtype.h"

namespace gradring::train {
namespace {

using enum TensorType;

constexpr std::array<TensorTypeNames, 22> kTypes = {{
    {boolean, 8, "BOOL", "|b1", "BoolStorage", "bool"},
    {f4, 4, "F4", "", "", ""},
    {f6_e2m3, 6, "F6_E2M3", "", "", ""},
    {f6_e3m2, 6, "F6_E3M2", "", "", ""},
    {u8, 8, "U8", "|u1", "ByteStorage", "uint8"},
    {i8, 8, "I8", "|i1", "CharStorage", "int8"},
    {f8_e5m2, 8, "F8_E5M2", "", "", "float8_e5m2"},
    {f8_e4m3, 8, "F8_E4M3", "", "", "float8_e4m3fn"},
    {f8_e8m0, 8, "F8_E8M0", "", "", "float8_e8m0fnu"},
    {f8_e4m3fnuz, 8, "F8_E4M3FNUZ", "", "", "float8_e4m3fnuz"},
    {f8_e5m2fnuz, 8, "F8_E5M2FNUZ", "", "", "float8_e5m2fnuz"},
    {i16, 16, "I16", "<i2", "ShortStorage", "int16"},
    {u16, 16, "U16", "<u2", "", "uint16"},
    {f16, 16, "F16", "<f2", "HalfStorage", "float16"},
    {bf16, 16, "BF16", "", "BFloat16Storage", "bfloat16"},
    {i32, 32, "I32", "<i4", "IntStorage", "int32"},
    {u32, 32, "U32", "<u4", "", "uint32"},
    {f32, 32, "F32", "<f4", "FloatStorage", "float32"},
    {c64, 64, "C64", "<c8", "ComplexFloatStorage", "complex64"},
    {f64, 64, "F64", "<f8", "DoubleStorage", "float64"},
    {i64, 64, "I64", "<i8", "LongStorage", "int64"},
    {u64, 64, "U64", "<u8", "", "uint64"},
}};

template <class Stored>
std::vector<double> elements_as(const TensorRecord& tensor) {
  std::vector<double> values(tensor.bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, tensor.bytes.data() + i * sizeof stored, sizeof stored);
    if constexpr (std::is_arithmetic_v<Stored>)
      values[i] = static_cast<double>(stored);
    else
      values[i] = kernels::to_float(stored);
  }
  return values;
}

/// "lacks 'a', 'b' and 3 more"
template <class List, class Describe>
void add_part(std::string& text, const std::string& verb, const List& list, Describe describe) {
  constexpr std::size_t kMostNamed = 5;
  if (list.empty()) return;
  text += (text.empty() ? "" : "; ") + verb;
  for (std::size_t i = 0; i < std::min(list.size(), kMostNamed); ++i) text += (i ? ", " : " ") + describe(list[i]);
  if (list.size() > kMostNamed) text += " and " + std::to_string(list.size() - kMostNamed) + " more";
}

/// Adds b * c to a; returns false if the sum exceeds `most`.
bool add_product(std::uint64_t& a, std::uint64_t b, std::uint64_t c, std::uint64_t most) {
  std::uint64_t product = 0;
  return !__builtin_mul_overflow(b, c, &product) && !__builtin_add_overflow(a, product, &a) && a <= most;
}

}  // namespace

std::span<const TensorTypeNames> tensor_types() { return kTypes; }

const TensorTypeNames& names_of(TensorType type) { return *std::ranges::find(kTypes, type, &TensorTypeNames::type); }

std::optional<TensorType> find_type(std::string_view TensorTypeNames::*format, std::string_view name) {
  const auto found = std::ranges::find(kTypes, name, format);
  if (name.empty() || found == kTypes.end()) return std::nullopt;
  return found->type;
}

std::optional<TensorType> torch_type(std::string_view full_name) {
  constexpr std::string_view kTorch = "torch.";
  if (!full_name.starts_with(kTorch)) return std::nullopt;
  const std::string_view name = full_name.substr(kTorch.size());
  const auto of_storage = find_type(&TensorTypeNames::torch, name);
  return of_storage ? of_storage : find_type(&TensorTypeNames::torch_dtype, name);
}

void swap_byte_order(TensorRecord& record) {
  const std::size_t element_bytes = names_of(record.type).bits / 8;
  const std::size_t number_bytes = record.type == c64 ? element_bytes / 2 : element_bytes;
  for (std::size_t begin = 0; begin + number_bytes <= record.bytes.size(); begin += number_bytes)
    std::ranges::reverse(std::span(record.bytes).subspan(begin, number_bytes));
}

std::optional<std::uint64_t> byte_size(TensorType type, std::span<const std::int64_t> shape) {
  constexpr std::uint64_t kLargestBits = kLargestTensorBytes * 8;
  std::uint64_t bits = names_of(type).bits;
  bool empty = false;
  for (std::int64_t extent : shape) {
    const auto factor = static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 1));
    if (extent < 0 || bits > kLargestBits / factor) return std::nullopt;
    bits *= factor;
    empty = empty || extent == 0;
  }
  if (empty) return 0;
  if (bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

bool StridedView::lies_in(std::uint64_t storage_elements) const {
  const auto negative = [](std::int64_t value) { return value < 0; };
  if (strides.size() != shape.size() || offset < 0 || std::ranges::any_of(shape, negative) ||
      std::ranges::any_of(strides, negative))
    return false;
  if (std::ranges::count(shape, 0) > 0) return true;
  auto last = static_cast<std::uint64_t>(offset);
  if (last >= storage_elements) return false;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (!add_product(last, static_cast<std::uint64_t>(shape[axis] - 1), static_cast<std::uint64_t>(strides[axis]),
                     storage_elements - 1))
      return false;
  return true;
}

std::vector<std::byte> StridedView::make_dense(std::span<const std::byte> storage, std::size_t element_bytes) const {
  std::size_t elements = 1;
  for (std::int64_t extent : shape) elements *= static_cast<std::size_t>(extent);
  std::vector<std::byte> dense(elements * element_bytes);
  if (elements == 0) return dense;
  if (strides == dense_strides(shape)) {
    std::memcpy(dense.data(), storage.data() + static_cast<std::size_t>(offset) * element_bytes, dense.size());
    return dense;
  }
  std::vector<std::int64_t> index(shape.size(), 0);
  auto at = static_cast<std::uint64_t>(offset);  // modulo 2^64: the stride of an extent of 1 can be anything
  for (std::size_t i = 0; i < elements; ++i) {
    std::memcpy(dense.data() + i * element_bytes, storage.data() + at * element_bytes, element_bytes);
    for (std::size_t axis = index.size(); axis-- > 0;) {  // increments the index
      const auto stride = static_cast<std::uint64_t>(strides[axis]);
      at += stride;
      if (++index[axis] < shape[axis]) break;
      at -= stride * static_cast<std::uint64_t>(index[axis]);
      index[axis] = 0;
    }
  }
  return dense;
}

std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * std::max<std::int64_t>(shape[axis], 1);
  return strides;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

std::optional<std::vector<double>> values_of(const TensorRecord& tensor) {
  switch (tensor.type) {
    case f32: return elements_as<float>(tensor);
    case f64: return elements_as<double>(tensor);
    case f16: return elements_as<kernels::Half>(tensor);
    case bf16: return elements_as<kernels::BFloat16>(tensor);
    case i8: return elements_as<std::int8_t>(tensor);
    case i16: return elements_as<std::int16_t>(tensor);
    case i32: return elements_as<std::int32_t>(tensor);
    case i64: return elements_as<std::int64_t>(tensor);
    case boolean:
    case u8: return elements_as<std::uint8_t>(tensor);
    case u16: return elements_as<std::uint16_t>(tensor);
    case u32: return elements_as<std::uint32_t>(tensor);
    case u64: return elements_as<std::uint64_t>(tensor);
    default: return std::nullopt;
  }
}

std::string TensorDifferences::to_string() const {
  std::string text;
  add_part(text, "lacks", missing, in_quotes);
  add_part(text, "has", unexpected, in_quotes);
  if (!unexpected.empty()) text += ", which the model lacks";
  add_part(text, "has", other_shape, [](const OtherShape& other) {
    return in_quotes(other.name) + " of shape " + shape_text(other.found) + ", expected " + shape_text(other.expected);
  });
  return text;
}

TensorDifferences compare_tensors(std::span<const TensorInfo> expected, std::span<const TensorInfo> found) {
  TensorDifferences differences;
  std::set<std::string_view> known;
  for (const TensorInfo& tensor : expected) {
    known.insert(tensor.name);
    const auto same_name = std::ranges::find(found, tensor.name, &TensorInfo::name);
    if (same_name == found.end())
      differences.missing.push_back(tensor.name);
    else if (same_name->shape != tensor.shape)
      differences.other_shape.push_back({tensor.name, tensor.shape, same_name->shape});
  }
  for (const TensorInfo& tensor : found)
    if (!known.contains(tensor.name)) differences.unexpected.push_back(tensor.name);
  return differences;
}

std::optional<std::string_view> duplicate_name(std::vector<std::string_view> names) {
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  return twice == names.end() ? std::nullopt : std::optional(*twice);
}

std::vector<TensorInfo> infos_of(std::span<const TensorRecord> tensors) { return {tensors.begin(), tensors.end()}; }

}  // namespace gradring::train
