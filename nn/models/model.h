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
  std::string name;  ///< PyTorch's module path, e.g. "conv_layers.0"; parameters are name + ".weight" and ".bias"
  Layer layer;
};

/// A model is what it computes, in order; it owns no memory and knows no device. The last layer gives the logits.
struct Model {
  std::string name;
  Shape sample;  ///< one sample without the batch: [height, width, channels]
  std::int64_t classes = 0;
  std::vector<NamedLayer> layers;
};

/// The seed model: conv3x3(1->32) ReLU pool2 conv3x3(32->64) ReLU pool2 flatten linear(256) ReLU linear(classes),
/// without padding; for 28x28x1 and ten classes 431,242 parameters.
///
/// Errors    InvalidArgument if `sample` is not [height, width, channels] or too small.
Model convnet(const Shape& sample, std::int64_t classes);

/// Eight convolutions, 3x3 and padded by 1, each with a ReLU, in pairs with max pooling between: 16, 16, pool, 48, 48, pool, 96, 96,
/// pool, 192, 192, flatten, linear(256), ReLU, linear(classes); for 28x28x1 and ten classes 1,098,074 parameters.
///
/// Errors    InvalidArgument if `sample` is not [height, width, channels], or smaller than 8 pixels either way.
Model convnet_deep(const Shape& sample, std::int64_t classes);

/// What a user may name.
std::span<const std::string_view> model_names();

/// The model of that name.
///
/// Errors    InvalidArgument for another name, says which there are; what the model says of `sample`.
Model make_model(std::string_view name, const Shape& sample, std::int64_t classes);

}  // namespace gradring::nn
