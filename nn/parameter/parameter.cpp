// SPDX-License-Identifier: Apache-2.0
#include "nn/parameter/parameter.h"

#include <cmath>
#include <numeric>

#include "kernels/base/error.h"

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

/// `image` is the shape before the Flatten, [n, h, w, c], or the input itself, [n, features].
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
  check(ours == elements && torch == elements, [&] {
    return parameter.name + " has " + std::to_string(elements) + " elements, but the spans have " +
           std::to_string(ours) + " and " + std::to_string(torch);
  });
}

/// Calls visit(index in our order, index in PyTorch's) for every element.
template <class Visit>
void each_pair(const Parameter& parameter, const Visit& visit) {
  const auto elements = static_cast<std::size_t>(parameter.shape.elements());
  const auto channels = static_cast<std::size_t>(parameter.channels);
  const auto positions = static_cast<std::size_t>(parameter.positions);
  for (std::size_t block = 0; block < elements; block += channels * positions)
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t p = 0; p < positions; ++p) visit(block + p * channels + c, block + c * positions + p);
}

/// kaiming_uniform_(a = sqrt(5)) for weights, 1 / sqrt(fan_in) for biases. Mathematically equal;
/// in floating point they may differ in the last bit, so both are computed as in PyTorch.
double bound_of(const Parameter& parameter) {
  const double root = std::sqrt(static_cast<double>(parameter.fan_in));
  if (parameter.torch_shape.rank() == 1) return 1.0 / root;
  const double slope = std::sqrt(5.0);
  const double gain = std::sqrt(2.0 / (1.0 + slope * slope));
  return std::sqrt(3.0) * (gain / root);
}

constexpr int kUnplaced = -1;

std::size_t rounded_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

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
    const Shape output = output_shape(named.layer, shape);
    image = std::holds_alternative<Flatten>(named.layer) ? shape : output;
    shape = output;
  }
  return parameters;
}

void to_torch_order(const Parameter& parameter, std::span<const float> ours, std::span<float> torch) {
  check_sizes(parameter, ours.size(), torch.size());
  each_pair(parameter, [&](std::size_t in_ours, std::size_t in_torch) { torch[in_torch] = ours[in_ours]; });
}

void from_torch_order(const Parameter& parameter, std::span<const float> torch, std::span<float> ours) {
  check_sizes(parameter, ours.size(), torch.size());
  each_pair(parameter, [&](std::size_t in_ours, std::size_t in_torch) { ours[in_ours] = torch[in_torch]; });
}

std::vector<std::vector<float>> draw_torch_uniform(std::span<const Parameter> parameters, std::uint64_t seed) {
  std::mt19937 words(static_cast<std::uint32_t>(seed));
  std::vector<std::vector<float>> drawn;
  for (const Parameter& parameter : parameters) {
    const auto high = static_cast<float>(bound_of(parameter));
    const float low = -high;
    std::vector<float> values(static_cast<std::size_t>(parameter.shape.elements()));
    for (float& value : values) {
      const float unit = static_cast<float>(words() & 0xffffffu) * 0x1p-24f;
      value = std::fma(unit, high - low, low);  // one rounding, as in PyTorch's builds
    }
    drawn.push_back(std::move(values));
  }
  return drawn;
}

ArenaLayout::ArenaLayout(std::span<const Parameter> parameters, std::span<const std::vector<int>> buckets,
                         std::size_t padding, std::size_t piggyback)
    : parameters_(parameters.size()), bucket_of_(parameters.size(), kUnplaced) {
  check(padding > 0, "the padding of an arena is 0 elements, expected 1 or more");
  check(!buckets.empty(), "an arena has no buckets, expected 1 or more");
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const std::size_t begin = elements_;
    for (int index : buckets[b]) {
      const auto i = static_cast<std::size_t>(index);
      check(i < parameters.size() && bucket_of_[i] == kUnplaced, [&] {
        return "bucket " + std::to_string(b) + " lists parameter " + std::to_string(index) +
               ", which does not exist or is in a bucket already";
      });
      parameters_[i] = {elements_, static_cast<std::size_t>(parameters[i].shape.elements())};
      bucket_of_[i] = static_cast<int>(b);
      elements_ = rounded_up(elements_ + parameters_[i].elements, kAlignment);
    }
    if (b + 1 == buckets.size()) {
      piggyback_ = {elements_, piggyback};
      elements_ += piggyback;
    }
    elements_ = rounded_up(elements_, std::lcm(padding, kAlignment));
    buckets_.push_back({begin, elements_ - begin});
  }
  for (std::size_t i = 0; i < parameters.size(); ++i)
    check(bucket_of_[i] != kUnplaced, [&] { return parameters[i].name + " is in no bucket"; });
}

Gradients gradients_in(const Arena& arena) {
  Gradients gradients{.layout = arena.layout, .buckets = {}, .piggyback = arena.piggyback().data()};
  for (int bucket = 0; bucket < arena.layout.buckets(); ++bucket)
    gradients.buckets.push_back(arena.bucket(bucket).data());
  return gradients;
}

Weights weights_at(const ArenaLayout& layout, kernels::DType dtype, const void* data) {
  Weights weights{.layout = layout, .dtype = dtype, .buckets = {}};
  for (int bucket = 0; bucket < layout.buckets(); ++bucket)
    weights.buckets.push_back(static_cast<const std::byte*>(data) +
                              layout.bucket(bucket).offset * kernels::size_of(dtype));
  return weights;
}

}  // namespace gradring::nn
