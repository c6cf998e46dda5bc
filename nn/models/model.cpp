// SPDX-License-Identifier: Apache-2.0
#include "nn/models/model.h"

#include <algorithm>
#include <array>

#include "kernels/base/error.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/flatten.h"
#include "nn/layers/linear.h"
#include "nn/layers/max_pool2d.h"
#include "nn/layers/relu.h"

namespace gradring::nn {
namespace {

/// What the image models have in common: convolutions, then two linear layers.
struct ImageClassifierSpec {
  std::string name;
  Shape sample;  // [height, width, channels]
  std::int64_t classes = 0;
  std::vector<Layer> conv_layers;
};

/// conv_layers.0, conv_layers.1, ..., flatten, fc_layers.0 (linear, 256), fc_layers.1 (ReLU), fc_layers.2 (linear,
/// classes): the names that PyTorch gives to the nn.Sequentials conv_layers and fc_layers.
Model image_classifier(const ImageClassifierSpec& spec) {
  constexpr std::int64_t kHidden = 256;
  const Shape& sample = spec.sample;
  check(sample.rank() == 3,
        [&] { return spec.name + " has samples of " + sample.to_string() + ", expected [height, width, channels]"; });
  Model model{.name = spec.name, .sample = sample, .classes = spec.classes, .layers = {}};
  for (const Layer& layer : spec.conv_layers)
    model.layers.push_back({"conv_layers." + std::to_string(model.layers.size()), layer});
  model.layers.push_back({"flatten", Flatten{}});
  const std::int64_t features = activations_of(model).back().shape[1];
  model.layers.push_back({"fc_layers.0", Linear{.in_features = features, .out_features = kHidden}});
  model.layers.push_back({"fc_layers.1", Relu{}});
  model.layers.push_back({"fc_layers.2", Linear{.in_features = kHidden, .out_features = spec.classes}});
  return model;
}

struct NamedModel {
  std::string_view name;
  Model (*make)(const Shape& sample, std::int64_t classes);
};

constexpr std::array kModels = {NamedModel{"convnet", convnet}, NamedModel{"convnet-deep", convnet_deep}};

constexpr auto kNames = [] {
  std::array<std::string_view, kModels.size()> names;
  std::ranges::transform(kModels, names.begin(), &NamedModel::name);
  return names;
}();

}  // namespace

std::vector<Activations> activations_of(const Model& model, std::int64_t batch) {
  std::vector<Activations> all = {Shape{batch, model.sample[0], model.sample[1], model.sample[2]}};
  for (const NamedLayer& named : model.layers) all.push_back(output_of(named.layer, all.back()));
  return all;
}

std::vector<Parameter> parameters_of(const Model& model) {
  const std::vector<Activations> inputs = activations_of(model);
  std::vector<Parameter> all;
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    for (Parameter& parameter : parameters_of(model.layers[i].layer, inputs[i])) {
      parameter.name = model.layers[i].name + "." + parameter.name;
      all.push_back(std::move(parameter));
    }
  return all;
}

Model convnet(const Shape& sample, std::int64_t classes) {
  const std::int64_t channels = sample.rank() == 3 ? sample[2] : 0;  // image_classifier checks the rank
  return image_classifier(
      {.name = "convnet",
       .sample = sample,
       .classes = classes,
       .conv_layers = {Conv2d{.in_channels = channels, .out_channels = 32, .kernel = 3}, Relu{}, MaxPool2d{},
                       Conv2d{.in_channels = 32, .out_channels = 64, .kernel = 3}, Relu{}, MaxPool2d{}}});
}

Model convnet_deep(const Shape& sample, std::int64_t classes) {
  // Channels grow faster than pooling shrinks the image at first, so that no stage's activations outweigh all others.
  constexpr std::array<std::int64_t, 4> kChannels = {16, 48, 96, 192};
  std::vector<Layer> layers;
  std::int64_t channels = sample.rank() == 3 ? sample[2] : 0;  // image_classifier checks the rank
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

std::span<const std::string_view> model_names() { return kNames; }

Model make_model(std::string_view name, const Shape& sample, std::int64_t classes) {
  const auto* const found = std::ranges::find(kModels, name, &NamedModel::name);
  if (found != kModels.end()) return found->make(sample, classes);
  std::string known;
  for (const std::string_view each : kNames) known += (known.empty() ? "" : ", ") + std::string(each);
  throw InvalidArgument("unknown model '" + std::string(name) + "': expected one of " + known);
}

}  // namespace gradring::nn
