// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/layers/layer.h"

namespace gradring::nn {

struct NamedLayer {
  std::string name;  ///< PyTorch's module path, e.g. "conv_layers.0"; parameters are name + ".weight", ...
  Layer layer;
  std::vector<std::string> inputs = {};  ///< the layers that it reads, kModelInput for the model's; empty: the one before
};

/// The name of a model's input among a layer's inputs.
inline constexpr std::string_view kModelInput = "input";

/// A graph of layers, each after those that it reads; owns no memory and knows no device. The last layer's output is the
/// logits.
struct Model {
  std::string name;
  Shape sample;  ///< one sample without the batch: [height, width, channels]
  std::int64_t classes = 0;
  std::vector<NamedLayer> layers;
};

/// What each layer reads: 0 is the model's input, i + 1 the output of layer i.
///
/// Errors    InvalidArgument if two layers have one name, a layer reads what is not before it or too few or too many
///           others, or nothing reads a layer but the last.
std::vector<std::vector<std::size_t>> reads_of(const Model& model);

/// The model's input for `batch` samples, then the output of each layer.
///
/// Errors    as reads_of; InvalidArgument if a layer cannot take what it reads.
std::vector<Activations> activations_of(const Model& model, std::int64_t batch = 1);

/// What each layer reads, of activations_of (one of its inputs: all have the same shape).
std::vector<Activations> inputs_of(const Model& model, std::int64_t batch = 1);

/// The parameters of `model`, with their names in it, in state_dict order.
std::vector<Parameter> parameters_of(const Model& model);

/// conv3x3(1->32) ReLU pool2 conv3x3(32->64) ReLU pool2 flatten linear(256) ReLU linear(classes), without padding;
/// 431,242 parameters for 28x28x1 and ten classes.
///
/// Errors    InvalidArgument if `sample` is not [height, width, channels] or too small.
Model convnet(const Shape& sample, std::int64_t classes);

/// Eight 3x3 convolutions, padded by 1, each with a ReLU, in pairs with max pooling between: 16, 16, pool, 48, 48,
/// pool, 96, 96, pool, 192, 192, flatten, linear(256), ReLU, linear(classes); 1,098,074 parameters for 28x28x1 and ten
/// classes.
///
/// Errors    InvalidArgument if `sample` is not [height, width, channels], or smaller than 8 pixels either way.
Model convnet_deep(const Shape& sample, std::int64_t classes);

/// The buffers of `model`: tensors that are saved, but not trained. Named and ordered as the parameters.
std::vector<Parameter> buffers_of(const Model& model);

/// The names that make_model accepts.
std::span<const std::string_view> model_names();

/// Errors    InvalidArgument for an unknown name, or as the model.
Model make_model(std::string_view name, const Shape& sample, std::int64_t classes);

}  // namespace gradring::nn
