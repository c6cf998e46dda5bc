// SPDX-License-Identifier: Apache-2.0
#include "nn/models/model.h"

#include <algorithm>
#include <array>
#include <map>

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

/// of(layer, input) for all layers, with the layers' names before those of the tensors.
template <class Of>
std::vector<Parameter> tensors_of(const Model& model, const Of& of) {
  const std::vector<Activations> inputs = inputs_of(model);
  std::vector<Parameter> all;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto mine = std::visit([&](const auto& layer) { return of(layer, inputs[i]); }, model.layers[i].layer);
    for (const Parameter& tensor : mine) {
      all.push_back(tensor);
      all.back().name = model.layers[i].name + "." + tensor.name;
    }
  }
  return all;
}

}  // namespace

std::vector<std::vector<std::size_t>> reads_of(const Model& model) {
  std::map<std::string_view, std::size_t> outputs = {{kModelInput, 0}};
  std::vector<std::vector<std::size_t>> reads;
  std::vector<int> readers(model.layers.size() + 1);
  for (const auto& [name, layer, inputs] : model.layers) {
    std::vector<std::size_t>& mine = reads.emplace_back();
    for (const std::string& input : inputs) {
      const auto found = outputs.find(input);
      check(found != outputs.end(),
            [&] { return name + " reads '" + input + "', expected the name of a layer before it, or input"; });
      mine.push_back(found->second);
    }
    if (inputs.empty()) mine.push_back(reads.size() - 1);
    check(mine.size() == inputs_of(layer), [&] {
      return name + " reads " + std::to_string(mine.size()) + " layers, but " + std::string(kind_of(layer)) +
             " takes " + std::to_string(inputs_of(layer));
    });
    for (const std::size_t read : mine) ++readers[read];
    check(outputs.emplace(name, reads.size()).second, [&] { return "two layers have the name '" + name + "'"; });
  }
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    check((readers[i + 1] == 0) == (i + 1 == model.layers.size()), [&] {
      return readers[i + 1] == 0 ? "no layer reads the output of " + model.layers[i].name
                                 : "the last layer, " + model.layers[i].name + ", is read, but gives the logits";
    });
  return reads;
}

std::vector<Activations> activations_of(const Model& model, std::int64_t batch) {
  const auto reads = reads_of(model);
  std::vector<Activations> all = {Shape{batch, model.sample[0], model.sample[1], model.sample[2]}};
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto& [name, layer, inputs] = model.layers[i];
    const Activations& first = all[reads[i].front()];
    for (const std::size_t other : reads[i])
      check(all[other].shape == first.shape, [&] {
        return name + " reads " + first.shape.to_string() + " and " + all[other].shape.to_string() +
               ", expected equal shapes";
      });
    all.push_back(output_of(layer, first));
  }
  return all;
}

std::vector<Activations> inputs_of(const Model& model, std::int64_t batch) {
  const std::vector<Activations> all = activations_of(model, batch);
  std::vector<Activations> inputs;
  for (const std::vector<std::size_t>& reads : reads_of(model)) inputs.push_back(all[reads.front()]);
  return inputs;
}

std::vector<Parameter> parameters_of(const Model& model) {
  return tensors_of(model, [](const auto& layer, const Activations& input) { return layer.parameters(input); });
}

std::vector<Parameter> buffers_of(const Model& model) {
  return tensors_of(model, [](const auto& layer, const Activations& input) { return layer.buffers(input); });
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
