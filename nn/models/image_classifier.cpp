// SPDX-License-Identifier: Apache-2.0
#include "nn/models/image_classifier.h"

#include "kernels/runtime/error.h"

namespace gradring::nn {

Model image_classifier(const ImageClassifierSpec& spec) {
  constexpr std::int64_t kHidden = 256;
  const Shape& sample = spec.sample;
  check(sample.rank() == 3, spec.name + " wants samples of [height, width, channels], not " + sample.to_string());
  Model model{.name = spec.name, .sample = sample, .classes = spec.classes, .layers = {}};
  for (const Layer& layer : spec.conv_layers)
    model.layers.push_back({"conv_layers." + std::to_string(model.layers.size()), layer});
  model.layers.push_back({"flatten", Flatten{}});
  Shape features{1, sample[0], sample[1], sample[2]};
  for (const NamedLayer& layer : model.layers) features = output_shape(layer.layer, features);
  model.layers.push_back({"fc_layers.0", Linear{.in_features = features[1], .out_features = kHidden}});
  model.layers.push_back({"fc_layers.1", Relu{}});
  model.layers.push_back({"fc_layers.2", Linear{.in_features = kHidden, .out_features = spec.classes}});
  return model;
}

}  // namespace gradring::nn
