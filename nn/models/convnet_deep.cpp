// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "nn/models/image_classifier.h"
#include "nn/models/model.h"

namespace gradring::nn {
namespace {

/// Output channels of the convolutions, stage by stage. They grow faster than pooling shrinks the image at first, so that
/// no stage's activations outweigh all others'.
constexpr std::array<std::int64_t, 4> kChannels = {16, 48, 96, 192};

}  // namespace

Model convnet_deep(const Shape& sample, std::int64_t classes) {
  std::vector<Layer> layers;
  std::int64_t channels = sample.rank() == 3 ? sample[2] : 0;  // refused below
  for (const std::int64_t wider : kChannels) {
    if (!layers.empty()) layers.emplace_back(MaxPool2d{});
    for (int i = 0; i < 2; ++i) {
      layers.emplace_back(Conv2d{.in_channels = channels, .out_channels = wider, .kernel = 3, .padding = 1});
      layers.emplace_back(Relu{});
      channels = wider;
    }
  }
  return image_classifier({.name = "convnet-deep", .sample = sample, .classes = classes, .conv_layers = layers});
}

}  // namespace gradring::nn
