// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/tensor_record.h"

#include <algorithm>

namespace gradring::train {

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

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 100;
  std::string shown(text.substr(0, kLongest));
  std::ranges::replace_if(
      shown, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return "'" + shown + (text.size() > kLongest ? "...'" : "'");
}

}  // namespace gradring::train
