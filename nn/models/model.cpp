// SPDX-License-Identifier: Apache-2.0
#include "nn/models/model.h"

#include <algorithm>
#include <array>

#include "kernels/base/error.h"

namespace gradring::nn {
namespace {

void expect(bool condition, std::string_view layer, const Shape& input, std::string_view wanted) {
  check(condition,
        [&] { return std::string(layer) + " has input " + input.to_string() + ", expected " + std::string(wanted); });
}

Shape output_of(const Conv2d& conv, const Shape& input) {
  expect(input.rank() == 4 && input[3] == conv.in_channels, "conv2d", input,
         "[n, h, w, " + std::to_string(conv.in_channels) + "]");
  const std::int64_t height = input[1] + 2 * conv.padding;
  const std::int64_t width = input[2] + 2 * conv.padding;
  expect(height >= conv.kernel && width >= conv.kernel, "conv2d", input, "an image no smaller than its window");
  return {input[0], (height - conv.kernel) / conv.stride + 1, (width - conv.kernel) / conv.stride + 1,
          conv.out_channels};
}

Shape output_of(const MaxPool2d& pool, const Shape& input) {
  expect(input.rank() == 4 && input[1] >= pool.window && input[2] >= pool.window, "max_pool2d", input,
         "[n, h, w, c] no smaller than its window");
  return {input[0], (input[1] - pool.window) / pool.stride + 1, (input[2] - pool.window) / pool.stride + 1, input[3]};
}

Shape output_of(const Flatten&, const Shape& input) {
  expect(input.rank() >= 1, "flatten", input, "a batch");
  return {input[0], input.with_batch(1).elements()};
}

Shape output_of(const Linear& linear, const Shape& input) {
  expect(input.rank() == 2 && input[1] == linear.in_features, "linear", input,
         "[n, " + std::to_string(linear.in_features) + "]");
  return {input[0], linear.out_features};
}

Shape output_of(const Relu&, const Shape& input) { return input; }

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
  Shape features{1, sample[0], sample[1], sample[2]};
  for (const NamedLayer& layer : model.layers) features = output_shape(layer.layer, features);
  model.layers.push_back({"fc_layers.0", Linear{.in_features = features[1], .out_features = kHidden}});
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

std::string_view kind_of(const Layer& layer) {
  return std::visit(Overloaded{[](const Conv2d&) { return std::string_view("conv2d"); },
                               [](const Relu&) { return std::string_view("relu"); },
                               [](const MaxPool2d&) { return std::string_view("max_pool2d"); },
                               [](const Flatten&) { return std::string_view("flatten"); },
                               [](const Linear&) { return std::string_view("linear"); }},
                    layer);
}

Shape output_shape(const Layer& layer, const Shape& input) {
  return std::visit([&](const auto& one) { return output_of(one, input); }, layer);
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
