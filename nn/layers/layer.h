// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

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

/// [n, h, w, c] -> [n, h*w*c]. Costs nothing: the memory is the same, only the shape's name changes.
struct Flatten {};

/// y = x w^T + b: x [n, in], w [out, in], b [out].
struct Linear {
  std::int64_t in_features = 0;
  std::int64_t out_features = 0;
};

/// One step of a model. A new layer is a new alternative here; the compiler then names every place that must know it.
using Layer = std::variant<Conv2d, Relu, MaxPool2d, Flatten, Linear>;

/// "conv2d", "relu", ...
std::string_view kind_of(const Layer& layer);

/// Shape of the output for an input shape with batch first.
///
/// Errors    InvalidArgument if the layer cannot take that input; names both.
Shape output_shape(const Layer& layer, const Shape& input);

}  // namespace gradring::nn
