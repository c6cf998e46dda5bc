// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/in_quotes.h"

namespace gradring::train {

/// The element types of tensor files. safetensors has them all, the other formats some.
// clang-format off
enum class TensorType : std::uint8_t {
  boolean, f4, f6_e2m3, f6_e3m2, u8, i8, f8_e5m2, f8_e4m3, f8_e8m0, f8_e4m3fnuz, f8_e5m2fnuz,
  i16, u16, f16, bf16, i32, u32, f32, c64, f64, i64, u64
};
// clang-format on

/// The names of a type in each format; empty where the format lacks it.
struct TensorTypeNames {
  TensorType type;
  unsigned bits;                 ///< of one element
  std::string_view safetensors;  ///< "F32"
  std::string_view npy;          ///< "<f4"
  std::string_view torch;        ///< "FloatStorage"; empty where PyTorch has an untyped storage
  std::string_view torch_dtype;  ///< "float32"
};

/// All types, each once.
std::span<const TensorTypeNames> tensor_types();

const TensorTypeNames& names_of(TensorType type);

/// The type named `name` in `format`: find_type(&TensorTypeNames::npy, "<f4") is f32.
std::optional<TensorType> find_type(std::string_view TensorTypeNames::*format, std::string_view name);

/// The type that "torch.FloatStorage" or "torch.float32" stands for; nothing for any other name.
std::optional<TensorType> torch_type(std::string_view full_name);

/// The description of a tensor in a file. An empty shape is a scalar; an extent of 0 means no elements.
struct TensorInfo {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape;

  bool operator==(const TensorInfo&) const = default;
};

/// A tensor as files hold it: dense, row-major, little-endian.
struct TensorRecord : TensorInfo {
  std::vector<std::byte> bytes;

  bool operator==(const TensorRecord&) const = default;
};

/// Makes a big-endian record little-endian: reverses the bytes of each number. Complex elements have two.
void swap_byte_order(TensorRecord& record);

/// No tensor of a file is larger, so that sums of a few sizes never overflow.
constexpr std::uint64_t kLargestTensorBytes = (std::uint64_t{1} << 48) - 1;

/// The size in bytes for a type and shape. Empty if an extent is negative, the size exceeds kLargestTensorBytes, or the
/// elements do not fill whole bytes.
std::optional<std::uint64_t> byte_size(TensorType type, std::span<const std::int64_t> shape);

/// The elements as numbers, in the file's order. Exact except for i64 and u64 beyond 2^53; true is 1. Empty for complex
/// types and for floating-point types of 8 bits or fewer.
///
/// Cost      8 bytes an element.
std::optional<std::vector<double>> values_of(const TensorRecord& tensor);

/// A tensor in a PyTorch storage: element (i, j, ...) is at offset + i * strides[0] + j * strides[1] + ...
struct StridedView {
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;

  /// Whether it is well-formed (one stride per extent, no negative numbers) and lies within the storage. It may have more
  /// elements than the storage: a stride of 0 repeats them (Tensor.expand).
  bool lies_in(std::uint64_t storage_elements) const;

  /// The elements, row-major. The view lies in `storage`.
  std::vector<std::byte> make_dense(std::span<const std::byte> storage, std::size_t element_bytes) const;
};

/// The strides of a dense, row-major tensor.
std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape);

/// "[32, 1, 3, 3]"
std::string shape_text(std::span<const std::int64_t> shape);

/// Where the tensors of a file differ from those a model expects.
struct TensorDifferences {
  struct OtherShape {
    std::string name;
    std::vector<std::int64_t> expected, found;
  };
  std::vector<std::string> missing;     ///< in the expected order
  std::vector<std::string> unexpected;  ///< in the file's order
  std::vector<OtherShape> other_shape;

  bool empty() const { return missing.empty() && unexpected.empty() && other_shape.empty(); }
  /// "lacks 'fc1.bias'; has 'fc3.bias', which the model lacks; has 'fc1.weight' of shape [10, 5], expected [10, 4]".
  /// Names at most five tensors of each kind.
  std::string to_string() const;
};

/// Compares names and shapes; types may differ.
TensorDifferences compare_tensors(std::span<const TensorInfo> expected, std::span<const TensorInfo> found);

/// A name that occurs twice, if any.
std::optional<std::string_view> duplicate_name(std::vector<std::string_view> names);

/// The tensors without their bytes.
std::vector<TensorInfo> infos_of(std::span<const TensorRecord> tensors);

}  // namespace gradring::train
