// SPDX-License-Identifier: Apache-2.0
#include "train/view/page/filters.h"

#include <algorithm>
#include <cmath>

namespace gradring::train::page {
namespace {

std::uint8_t shade_of(double weight, double largest) {
  const double share = std::isfinite(weight) && largest > 0 ? weight / largest : 0;
  return static_cast<std::uint8_t>(std::lround(127.5 + 127.5 * share));
}

}  // namespace

ShadedFilters shaded_filters(std::span<const double> weights, std::size_t channels, std::size_t area) {
  ShadedFilters filters;
  for (const double weight : weights)
    if (std::isfinite(weight)) filters.largest = std::max(filters.largest, std::abs(weight));
  for (; weights.size() >= channels * area; weights = weights.subspan(channels * area)) {
    std::vector<std::uint8_t>& image = filters.images.emplace_back(channels * area);
    for (std::size_t channel = 0; channel < channels; ++channel)
      for (std::size_t i = 0; i < area; ++i)
        image[i * channels + channel] = shade_of(weights[channel * area + i], filters.largest);
  }
  return filters;
}

}  // namespace gradring::train::page
