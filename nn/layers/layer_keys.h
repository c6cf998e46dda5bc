// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

namespace gradring::nn {

/// What a model file says of one layer: { conv2d = "conv1", out = "2 * width", kernel = 3 }. The keys that a layer's
/// `read` asks for are those that it accepts.
class LayerKeys {
 public:
  /// The most that a layer's numbers may be.
  static constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

  virtual ~LayerKeys() = default;
  LayerKeys() = default;
  LayerKeys(const LayerKeys&) = delete;
  LayerKeys& operator=(const LayerKeys&) = delete;

  /// An integer or an expression, from `least` to `most`.
  ///
  /// Errors    InvalidArgument if the file has another value, or none and there is no `otherwise`.
  virtual std::int64_t integer(std::string_view key, std::int64_t least, std::optional<std::int64_t> otherwise = {},
                               std::int64_t most = kMost) = 0;
  /// A number from `least` to `most`.
  ///
  /// Errors    as integer.
  virtual double number(std::string_view key, double least, double most, std::optional<double> otherwise = {}) = 0;
  /// true or false.
  ///
  /// Errors    InvalidArgument if the file has another value.
  virtual bool flag(std::string_view key, bool otherwise) = 0;
  /// The position of the key's value among `choices`; 0, the default, without the key.
  ///
  /// Errors    InvalidArgument if the file has another value.
  virtual std::size_t choice(std::string_view key, std::span<const std::string_view> choices) = 0;
};

}  // namespace gradring::nn
