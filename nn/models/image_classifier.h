// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/models/model.h"

namespace gradring::nn {

/// What the models for images have in common: convolutions, then two linear layers.
struct ImageClassifierSpec {
  std::string name;
  Shape sample;  ///< [height, width, channels]
  std::int64_t classes = 0;
  std::vector<Layer> conv_layers;
};

/// conv_layers.0, conv_layers.1, ..., flatten, fc_layers.0 (linear, 256) fc_layers.1 (ReLU) fc_layers.2 (linear, classes):
/// the names that PyTorch gives to two nn.Sequential, conv_layers and fc_layers.
///
/// Errors    InvalidArgument if `sample` is not [height, width, channels] or too small.
Model image_classifier(const ImageClassifierSpec& spec);

}  // namespace gradring::nn
