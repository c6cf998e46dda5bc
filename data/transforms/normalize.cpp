// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/normalize.h"

#include <cstddef>
#include <string>

#include "kernels/runtime/error.h"

namespace gradring::data {

Normalize::Normalize(const NormalizeSpec& spec) : tables_(spec.mean.size()) {
  check(!tables_.empty() && spec.std.size() == spec.mean.size(),
        "normalisation needs one mean and one std per channel, not " + std::to_string(spec.mean.size()) + " and " +
            std::to_string(spec.std.size()));
  for (std::size_t channel = 0; channel < tables_.size(); ++channel) {
    check(spec.std[channel] > 0, "normalisation needs a std above 0, not " + std::to_string(spec.std[channel]));
    for (std::size_t value = 0; value < 256; ++value) {
      const float scaled = static_cast<float>(value) / 255.0f;
      tables_[channel][value] = (scaled - spec.mean[channel]) / spec.std[channel];
    }
  }
}

void Normalize::apply(std::span<const std::uint8_t> pixels, std::span<float> out) const {
  if (pixels.size() != out.size() || pixels.size() % tables_.size() != 0)
    throw InvalidArgument("cannot normalise " + std::to_string(pixels.size()) + " bytes of " +
                          std::to_string(tables_.size()) + " channels into " + std::to_string(out.size()) + " floats");
  for (std::size_t channel = 0; channel < tables_.size(); ++channel)
    for (std::size_t i = channel; i < pixels.size(); i += tables_.size()) out[i] = tables_[channel][pixels[i]];
}

}  // namespace gradring::data
