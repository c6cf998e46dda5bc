// SPDX-License-Identifier: Apache-2.0
#include "nn/parameter/parameter.h"

#include "kernels/runtime/error.h"
#include "nn/layers/overloaded.h"

namespace gradring::nn {
namespace {

void add_conv2d(const std::string& name, const Conv2d& conv, std::vector<Parameter>& parameters) {
  const std::int64_t k = conv.kernel;
  const std::int64_t fan_in = conv.in_channels * k * k;
  parameters.push_back({.name = name + ".weight",
                        .shape = {conv.out_channels, k, k, conv.in_channels},
                        .torch_shape = {conv.out_channels, conv.in_channels, k, k},
                        .fan_in = fan_in,
                        .channels = conv.in_channels,
                        .positions = k * k});
  parameters.push_back(
      {.name = name + ".bias", .shape = {conv.out_channels}, .torch_shape = {conv.out_channels}, .fan_in = fan_in});
}

/// `image` is what was flattened into the layer's input: [n, h, w, c], or [n, features] where nothing was.
void add_linear(const std::string& name, const Linear& linear, const Shape& image, std::vector<Parameter>& parameters) {
  const std::int64_t channels = image[image.rank() - 1];
  parameters.push_back({.name = name + ".weight",
                        .shape = {linear.out_features, linear.in_features},
                        .torch_shape = {linear.out_features, linear.in_features},
                        .fan_in = linear.in_features,
                        .channels = channels,
                        .positions = linear.in_features / channels});
  parameters.push_back({.name = name + ".bias",
                        .shape = {linear.out_features},
                        .torch_shape = {linear.out_features},
                        .fan_in = linear.in_features});
}

void check_sizes(const Parameter& parameter, std::size_t ours, std::size_t torch) {
  const auto elements = static_cast<std::size_t>(parameter.shape.elements());
  check(ours == elements && torch == elements, parameter.name + " has " + std::to_string(elements) +
                                                   " elements, the spans " + std::to_string(ours) + " and " +
                                                   std::to_string(torch));
}

}  // namespace

std::vector<Parameter> parameters_of(const Model& model) {
  std::vector<Parameter> parameters;
  Shape shape{1, model.sample[0], model.sample[1], model.sample[2]};
  Shape image = shape;  // the shape before the last Flatten, or the features themselves
  for (const NamedLayer& named : model.layers) {
    std::visit(Overloaded{[&](const Conv2d& conv) { add_conv2d(named.name, conv, parameters); },
                          [&](const Linear& linear) { add_linear(named.name, linear, image, parameters); },
                          [](const auto&) {}},
               named.layer);
    if (std::holds_alternative<Flatten>(named.layer)) image = shape;
    shape = output_shape(named.layer, shape);
    if (!std::holds_alternative<Flatten>(named.layer)) image = shape;
  }
  return parameters;
}

void to_torch_order(const Parameter& parameter, std::span<const float> ours, std::span<float> torch) {
  check_sizes(parameter, ours.size(), torch.size());
  const auto channels = static_cast<std::size_t>(parameter.channels);
  const auto positions = static_cast<std::size_t>(parameter.positions);
  for (std::size_t block = 0; block < ours.size(); block += channels * positions)
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t p = 0; p < positions; ++p) torch[block + c * positions + p] = ours[block + p * channels + c];
}

void from_torch_order(const Parameter& parameter, std::span<const float> torch, std::span<float> ours) {
  check_sizes(parameter, ours.size(), torch.size());
  const auto channels = static_cast<std::size_t>(parameter.channels);
  const auto positions = static_cast<std::size_t>(parameter.positions);
  for (std::size_t block = 0; block < ours.size(); block += channels * positions)
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t p = 0; p < positions; ++p) ours[block + p * channels + c] = torch[block + c * positions + p];
}

}  // namespace gradring::nn
