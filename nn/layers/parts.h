// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/base/error.h"
#include "nn/layers/layer_keys.h"
#include "nn/layers/parameter.h"

namespace gradring::nn {

/// The values between two layers. Our order is [n, positions, channels], PyTorch's [n, channels, positions]: a Flatten
/// changes the shape and keeps the channels, so that the layers after it find PyTorch's order.
struct Activations {
  Shape shape;  ///< batch first: [n, h, w, c] or [n, features]
  std::int64_t channels = 1;

  Activations(const Shape& activations)  // NOLINT(google-explicit-constructor): what most layers give
      : Activations(activations, activations.rank() > 0 ? activations[activations.rank() - 1] : 1) {}
  Activations(const Shape& activations, std::int64_t channels_of) : shape(activations), channels(channels_of) {}

  /// Whether a sample's values are features in PyTorch's order, too; not those of a flattened image.
  bool are_features_in_torch_order() const { return shape.rank() == 2 && (channels == 1 || channels == shape[1]); }
  /// Whether values of this and of `other`, of one shape, are in one order.
  bool has_order_of(const Activations& other) const {
    return channels == other.channels || (are_features_in_torch_order() && other.are_features_in_torch_order());
  }
};

/// A layer as ONNX operators; the last gives its output.
struct OnnxNode {
  using Value = std::variant<std::int64_t, float, std::vector<std::int64_t>>;

  /// What a node reads: the layer's input, the output of an earlier node of the layer by number, or a constant.
  using Operand = std::variant<int, float>;

  std::string_view op;
  std::vector<std::pair<std::string_view, Value>> attributes = {};
  std::vector<Operand> operands = {};  ///< empty: the layer's inputs, parameters and buffers, in this order
};

/// "[n, 28, 28, 1]": a shape whose first extent is the batch.
inline std::string shown_for_any_batch(const Shape& shape) {
  std::string text = "[n";
  for (int axis = 1; axis < shape.rank(); ++axis) text += ", " + std::to_string(shape[axis]);
  return text + "]";
}

/// The key `init` of a layer with a weight: one of `accepted`, of which the first is the default.
inline Init read_init(LayerKeys& keys, std::span<const Init> accepted) {
  static constexpr std::string_view kNames[] = {"standard", "dirac", "unit_variance", "whitening"};
  std::vector<std::string_view> names;
  for (const Init init : accepted) names.push_back(kNames[static_cast<std::size_t>(init)]);
  return accepted[keys.choice("init", names)];
}

/// Errors    InvalidArgument for Init::unit_variance of a single element, which has no standard deviation.
inline void check_deviation(Init init, std::initializer_list<std::int64_t> extents) {
  check(init != Init::unit_variance || std::ranges::any_of(extents, [](std::int64_t extent) { return extent != 1; }),
        [] { return std::string("unit_variance divides by the deviation of the weight, which has one element only"); });
}

/// "1e-05": the shortest text of that value.
template <class Real>
std::string shortest(Real value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

/// Among the operands of an OnnxNode.
inline constexpr int kLayerInput = -1;

/// Errors    InvalidArgument unless `condition`.
inline void check_input(bool condition, std::string_view layer, const Shape& input, std::string_view expected) {
  if (condition) return;
  throw InvalidArgument(std::string(layer) + " has input " + shown_for_any_batch(input) + ", expected " +
                        std::string(expected));
}

/// [n, h, w, c] -> [n, rows, columns, channels], one of each for each window: what fills no window is dropped.
///
/// Errors    InvalidArgument if there is no window.
inline Shape windows_of(std::string_view layer, const Shape& x, std::int64_t window, std::int64_t stride,
                        std::int64_t padding, std::int64_t channels) {
  check_input(x.rank() == 4, layer, x, "[n, h, w, c]");
  const std::int64_t height = x[1] + 2 * padding, width = x[2] + 2 * padding;
  if (height < window || width < window) {
    const auto square = [](std::int64_t side) { return std::to_string(side) + " x " + std::to_string(side); };
    check_input(false, layer, x,
                "an image of at least " + square(window - 2 * padding) + " for windows of " + square(window) +
                    (padding == 0 ? "" : " and padding " + std::to_string(padding)));
  }
  return {x[0], (height - window) / stride + 1, (width - window) / stride + 1, channels};
}

}  // namespace gradring::nn
