// SPDX-License-Identifier: Apache-2.0
#include "nn/layers/parameter.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "kernels/base/error.h"

namespace gradring::nn {
namespace {

void check_sizes(const Parameter& parameter, std::size_t ours, std::size_t torch) {
  const auto elements = static_cast<std::size_t>(parameter.shape.elements());
  check(ours == elements && torch == elements, [&] {
    return parameter.name + " has " + std::to_string(elements) + " elements, but the spans have " +
           std::to_string(ours) + " and " + std::to_string(torch);
  });
}

/// torch.nn.init.dirac_(w[:n]), n the inputs of w: [out, in, height, width].
void copy_channels(const Shape& shape, std::vector<float>& w) {
  const std::int64_t inputs = shape[1], positions = shape[2] * shape[3];
  const std::int64_t center = shape[2] / 2 * shape[3] + shape[3] / 2;
  for (std::int64_t i = 0; i < std::min(shape[0], inputs); ++i) {
    const auto filter = w.begin() + i * inputs * positions;
    std::fill_n(filter, inputs * positions, 0.0f);
    filter[i * positions + center] = 1;
  }
}

/// Of a sample, as torch.std.
double deviation_of(const std::vector<float>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const float value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (count - 1));
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

}  // namespace

// kaiming_uniform_(a = sqrt(5)) for weights, 1 / sqrt(fan_in) for biases. Mathematically equal; in floating point they may
// differ in the last bit, so both are computed as in PyTorch.
std::vector<Parameter> weight_and_bias(bool has_bias, Parameter weight) {
  const std::int64_t outputs = weight.shape[0];
  const std::int64_t inputs = weight.shape.elements() / outputs;  // of each output
  const double root = std::sqrt(static_cast<double>(inputs));
  const double slope = std::sqrt(5.0);
  const double gain = std::sqrt(2.0 / (1.0 + slope * slope));
  weight.name = "weight";
  weight.bound = std::sqrt(3.0) * (gain / root);
  if (!has_bias) return {weight};
  return {weight, {.name = "bias", .shape = {outputs}, .torch_shape = {outputs}, .bound = 1.0 / root}};
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
    const auto high = static_cast<float>(parameter.bound);
    const float low = -high;
    std::vector<float> values(static_cast<std::size_t>(parameter.shape.elements()), parameter.constant);
    if (parameter.bound > 0)
      for (float& value : values) {
        const float unit = static_cast<float>(words() & 0xffffffu) * 0x1p-24f;
        value = std::fma(unit, high - low, low);  // one rounding, as in PyTorch's builds
      }
    if (parameter.init == Init::dirac) copy_channels(parameter.torch_shape, values);
    if (parameter.init == Init::unit_variance) {
      const float factor = 1.0f / static_cast<float>(deviation_of(values));
      for (float& value : values) value *= factor;
    }
    drawn.push_back(std::move(values));
  }
  return drawn;
}

}  // namespace gradring::nn
