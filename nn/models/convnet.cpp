// SPDX-License-Identifier: Apache-2.0
#include "nn/models/image_classifier.h"
#include "nn/models/model.h"

namespace gradring::nn {

Model convnet(const Shape& sample, std::int64_t classes) {
  const std::int64_t channels = sample.rank() == 3 ? sample[2] : 0;  // refused below
  return image_classifier(
      {.name = "convnet",
       .sample = sample,
       .classes = classes,
       .conv_layers = {Conv2d{.in_channels = channels, .out_channels = 32, .kernel = 3}, Relu{}, MaxPool2d{},
                       Conv2d{.in_channels = 32, .out_channels = 64, .kernel = 3}, Relu{}, MaxPool2d{}}});
}

}  // namespace gradring::nn
