// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kernels/base/error.h"

namespace gradring::tests {

/// One tensor of a safetensors file, as stored: little-endian, C order.
struct StoredTensor {
  std::string dtype;  ///< the file's own word: "F32", "F64", "I64", "U8", ...
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  std::int64_t elements() const;
  /// A typed copy of the values.
  ///
  /// Errors    InvalidArgument if T is not what dtype says.
  template <class T>
  std::vector<T> as() const;
};

using StoredTensors = std::map<std::string, StoredTensor>;

/// Reads a whole safetensors file; `__metadata__` is checked and left out.
///
/// Errors    Error, with the path, for whatever the format forbids: duplicate keys, holes, overlaps, trailing bytes,
///           ...
StoredTensors read_safetensors(const std::filesystem::path& path);

/// Reads tests/golden/<name>.safetensors.
StoredTensors read_golden(std::string_view name);

/// The file's word for a host type.
template <class T>
constexpr std::string_view stored_name() {
  if constexpr (std::is_same_v<T, float>) return "F32";
  if constexpr (std::is_same_v<T, double>) return "F64";
  if constexpr (std::is_same_v<T, std::int32_t>) return "I32";
  if constexpr (std::is_same_v<T, std::int64_t>) return "I64";
  if constexpr (std::is_same_v<T, std::uint8_t>) return "U8";
}

template <class T>
std::vector<T> StoredTensor::as() const {
  check(dtype == stored_name<T>(), "the stored tensor holds " + dtype + ", not " + std::string(stored_name<T>()));
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace gradring::tests
