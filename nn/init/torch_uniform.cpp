// SPDX-License-Identifier: Apache-2.0
#include "nn/init/torch_uniform.h"

#include <cmath>

namespace gradring::nn {
namespace {

/// kaiming_uniform_(a = sqrt(5)) for weights, 1 / sqrt(fan_in) for biases. They are the same number on paper; in
/// floating point they may differ in the last bit, so both are written as PyTorch computes them.
double bound_of(const Parameter& parameter) {
  const double root = std::sqrt(static_cast<double>(parameter.fan_in));
  if (parameter.torch_shape.rank() == 1) return 1.0 / root;
  const double slope = std::sqrt(5.0);
  const double gain = std::sqrt(2.0 / (1.0 + slope * slope));
  return std::sqrt(3.0) * (gain / root);
}

}  // namespace

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

}  // namespace gradring::nn
