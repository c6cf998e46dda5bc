// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/tensor_type.h"

namespace gradring::train {

/// What a file says about one of its tensors. The empty shape is a scalar; an extent of 0 leaves no elements.
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

/// No tensor of a file is larger, so that sums of a few sizes never overflow.
constexpr std::uint64_t kLargestTensorBytes = (std::uint64_t{1} << 48) - 1;

/// How many bytes a tensor has by its type and shape. Empty if an extent is negative, the tensor would be larger than
/// kLargestTensorBytes, or its elements do not fill whole bytes.
std::optional<std::uint64_t> byte_size(TensorType type, std::span<const std::int64_t> shape);

/// "[32, 1, 3, 3]"
std::string shape_text(std::span<const std::int64_t> shape);

/// `text` for a message: in quotes, at most 100 characters, what does not print as '?'.
std::string in_quotes(std::string_view text);

}  // namespace gradring::train
