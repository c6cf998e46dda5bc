// SPDX-License-Identifier: Apache-2.0
#include "data/images/resize.h"

#include <algorithm>
#include <cmath>

#include "kernels/runtime/error.h"

namespace gradring::data {
namespace {

/// The old pixels, one after another, whose weighted sum a new one is.
struct Mixture {
  std::int64_t first = 0;
  std::vector<double> weights;
};

/// A new pixel covers [begin, end) of the old axis.
Mixture mean_of(double begin, double end, std::int64_t from) {
  Mixture mixture{.first = std::min(static_cast<std::int64_t>(begin), from - 1), .weights = {}};
  for (std::int64_t i = mixture.first; i < from && static_cast<double>(i) < end; ++i) {
    const double covered = std::min(end, static_cast<double>(i + 1)) - std::max(begin, static_cast<double>(i));
    mixture.weights.push_back(covered / (end - begin));
  }
  return mixture;
}

/// A new pixel's centre lies at `centre` of the old axis; beyond the outermost centres nothing changes any more.
Mixture between(double centre, std::int64_t from) {
  const double place = std::clamp(centre - 0.5, 0.0, static_cast<double>(from - 1));
  const auto first = static_cast<std::int64_t>(place);
  const double share = place - static_cast<double>(first);
  if (share == 0) return {.first = first, .weights = {1}};
  return {.first = first, .weights = {1 - share, share}};
}

std::vector<Mixture> mixtures(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  std::vector<Mixture> all;
  for (std::int64_t i = 0; i < to; ++i) {
    const auto at = static_cast<double>(i);
    all.push_back(to < from ? mean_of(at * scale, (at + 1) * scale, from) : between((at + 0.5) * scale, from));
  }
  return all;
}

/// One row of the image, mixed along it.
std::vector<double> mixed_row(const Image& image, std::int64_t row, const std::vector<Mixture>& cols) {
  std::vector<double> mixed;
  for (const Mixture& mixture : cols)
    for (std::int64_t channel = 0; channel < image.channels; ++channel) {
      double sum = 0;
      for (std::size_t i = 0; i < mixture.weights.size(); ++i)
        sum += mixture.weights[i] * image.at(row, mixture.first + static_cast<std::int64_t>(i), channel);
      mixed.push_back(sum);
    }
  return mixed;
}

}  // namespace

Image resized(const Image& image, std::int64_t height, std::int64_t width) {
  check(std::min({image.height, image.width, image.channels, height, width}) > 0, "an image has no pixels");
  const std::vector<Mixture> cols = mixtures(image.width, width);
  Image result{.height = height, .width = width, .channels = image.channels, .pixels = {}};
  for (const Mixture& mixture : mixtures(image.height, height)) {
    std::vector<double> sums(static_cast<std::size_t>(width * image.channels), 0);
    for (std::size_t i = 0; i < mixture.weights.size(); ++i) {
      const auto row = mixed_row(image, mixture.first + static_cast<std::int64_t>(i), cols);
      for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += mixture.weights[i] * row[j];
    }
    for (const double sum : sums) result.pixels.push_back(static_cast<std::uint8_t>(std::lround(sum)));
  }
  return result;
}

}  // namespace gradring::data
