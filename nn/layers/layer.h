// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <span>

#include "nn/layers/add.h"
#include "nn/layers/avg_pool2d.h"
#include "nn/layers/batch_norm2d.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/dropout.h"
#include "nn/layers/flatten.h"
#include "nn/layers/gelu.h"
#include "nn/layers/linear.h"
#include "nn/layers/max_pool2d.h"
#include "nn/layers/relu.h"
#include "nn/layers/scale.h"
#include "nn/layers/silu.h"

namespace gradring::nn {

/// The parts that every layer states, "none" included. If one is missing, the compiler names it.
template <class L>
concept StatesItsParts = requires(const L& layer, const Activations& input, LayerKeys& keys) {
  // "conv2d", in messages and benchmarks, and its sizes for the latter: "1->32", or nothing.
  { L::kKind } -> std::convertible_to<std::string_view>;
  { layer.sizes() } -> std::same_as<std::string>;
  // What an nn.Module often calls such layers, before a number: conv1, fc2.
  { L::kTorchAttribute } -> std::convertible_to<std::string_view>;
  // How PyTorch makes it: "Linear(256, 10)".
  { layer.torch_module() } -> std::same_as<std::string>;
  // How many layers' outputs it reads, all of one shape: `input` is any of them.
  { L::kInputs } -> std::convertible_to<std::size_t>;
  // Throws InvalidArgument if the layer cannot take that input.
  { layer.output(input) } -> std::same_as<Activations>;
  // From a model file: the keys that it accepts besides its name and `inputs`.
  { L::read(keys, input) } -> std::same_as<L>;
  // For one element of the output, approximately: the cost of recomputing it.
  { layer.multiplications() } -> std::same_as<std::int64_t>;
  // In the order of PyTorch's state_dict.
  { layer.parameters(input) } -> std::same_as<std::vector<Parameter>>;
  // What is saved, but not trained.
  { layer.buffers(input) } -> std::same_as<std::vector<Parameter>>;
  { layer.onnx() } -> std::same_as<std::vector<OnnxNode>>;
};

template <class L>
struct Stated {
  static_assert(StatesItsParts<L>, "a layer lacks a part");
  using Type = L;
};
template <class... L>
using OneOf = std::variant<typename Stated<L>::Type...>;

using Layer = OneOf<Conv2d, BatchNorm2d, Relu, Gelu, Silu, Scale, MaxPool2d, AvgPool2d, GlobalAvgPool2d, Dropout,
                    Flatten, Linear, Add>;

/// "conv2d", "relu", ...
inline std::string_view kind_of(const Layer& layer) {
  return std::visit([](const auto& one) { return one.kKind; }, layer);
}

/// The kinds of all layers.
std::span<const std::string_view> layer_kinds();

/// The layer of that kind which a model file describes, and which reads `input`.
///
/// Errors    InvalidArgument if there is no such kind, the keys are not those of the layer, or it cannot take that input.
Layer read_layer(std::string_view kind, LayerKeys& keys, const Activations& input);

inline std::size_t inputs_of(const Layer& layer) {
  return std::visit([](const auto& one) { return one.kInputs; }, layer);
}

/// Errors    InvalidArgument if the layer cannot take that input.
inline Activations output_of(const Layer& layer, const Activations& input) {
  return std::visit([&](const auto& one) { return one.output(input); }, layer);
}

/// The trained tensors of a layer, in the order of PyTorch's state_dict.
inline std::vector<Parameter> parameters_of(const Layer& layer, const Activations& input) {
  return std::visit([&](const auto& one) { return one.parameters(input); }, layer);
}

/// The tensors of a layer that are saved, but not trained.
inline std::vector<Parameter> buffers_of(const Layer& layer, const Activations& input) {
  return std::visit([&](const auto& one) { return one.buffers(input); }, layer);
}

}  // namespace gradring::nn
