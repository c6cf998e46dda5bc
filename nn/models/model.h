// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/runtime/shape.h"

namespace gradring::nn {

using kernels::Shape;

/// y = conv(x, w) + b: square windows, NHWC activations, OHWI weights.
struct Conv2d {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

/// y = max(x, 0).
struct Relu {};

/// y = the maximum of each window, NHWC; rows and columns that fill no whole window are dropped.
struct MaxPool2d {
  std::int64_t window = 2;
  std::int64_t stride = 2;
};

/// [n, h, w, c] -> [n, h*w*c]. Only the shape changes; the memory is the same.
struct Flatten {};

/// y = x w^T + b: x [n, in], w [out, in], b [out].
struct Linear {
  std::int64_t in_features = 0;
  std::int64_t out_features = 0;
};

/// A new layer is a new alternative here; the compiler then names every place that must handle it.
using Layer = std::variant<Conv2d, Relu, MaxPool2d, Flatten, Linear>;

/// One callable out of several lambdas, for std::visit.
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // clang 16 does not deduce it for aggregates

/// "conv2d", "relu", ...
std::string_view kind_of(const Layer& layer);

/// Shape of the output for an input shape with batch first.
///
/// Errors    InvalidArgument if the layer cannot take that input.
Shape output_shape(const Layer& layer, const Shape& input);

struct NamedLayer {
  std::string name;  ///< PyTorch's module path, e.g. "conv_layers.0"; parameters are name + ".weight" and ".bias"
  Layer layer;
};

/// A list of layers; owns no memory and knows no device. The last layer's output is the logits.
struct Model {
  std::string name;
  Shape sample;  ///< one sample without the batch: [height, width, channels]
  std::int64_t classes = 0;
  std::vector<NamedLayer> layers;
};

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

/// The names that make_model accepts.
std::span<const std::string_view> model_names();

/// Errors    InvalidArgument for an unknown name, or as the model.
Model make_model(std::string_view name, const Shape& sample, std::int64_t classes);

}  // namespace gradring::nn
