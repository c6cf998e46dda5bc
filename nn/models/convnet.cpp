// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/error.h"
#include "nn/models/model.h"

namespace gradring::nn {

Model convnet(const Shape& sample, std::int64_t classes) {
  check(sample.rank() == 3, "the ConvNet wants samples of [height, width, channels], not " + sample.to_string());
  Model model{.name = "convnet", .sample = sample, .classes = classes, .layers = {}};
  model.layers = {
      {"conv_layers.0", Conv2d{.in_channels = sample[2], .out_channels = 32, .kernel = 3}},
      {"conv_layers.1", Relu{}},
      {"conv_layers.2", MaxPool2d{}},
      {"conv_layers.3", Conv2d{.in_channels = 32, .out_channels = 64, .kernel = 3}},
      {"conv_layers.4", Relu{}},
      {"conv_layers.5", MaxPool2d{}},
      {"flatten", Flatten{}},
  };
  Shape features{1, sample[0], sample[1], sample[2]};
  for (const NamedLayer& layer : model.layers) features = output_shape(layer.layer, features);
  model.layers.push_back({"fc_layers.0", Linear{.in_features = features[1], .out_features = 256}});
  model.layers.push_back({"fc_layers.1", Relu{}});
  model.layers.push_back({"fc_layers.2", Linear{.in_features = 256, .out_features = classes}});
  return model;
}

Model make_model(std::string_view name, const Shape& sample, std::int64_t classes) {
  if (name == "convnet") return convnet(sample, classes);
  throw InvalidArgument("there is no model '" + std::string(name) + "': the models are convnet");
}

}  // namespace gradring::nn
