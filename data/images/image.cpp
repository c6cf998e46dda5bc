// SPDX-License-Identifier: Apache-2.0
#include "data/images/image.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"

namespace gradring::data {
namespace {

/// A new pixel as the weighted sum of consecutive old ones.
struct Mixture {
  std::int64_t first = 0;
  std::vector<double> weights;
};

/// A new pixel covers [begin, end) on the old axis.
Mixture mean_of(double begin, double end, std::int64_t from) {
  Mixture mixture{.first = std::min(static_cast<std::int64_t>(begin), from - 1), .weights = {}};
  for (std::int64_t i = mixture.first; i < from && static_cast<double>(i) < end; ++i) {
    const double covered = std::min(end, static_cast<double>(i + 1)) - std::max(begin, static_cast<double>(i));
    mixture.weights.push_back(covered / (end - begin));
  }
  return mixture;
}

/// A new pixel's centre is at `centre` on the old axis; constant beyond the outermost old centres.
Mixture between(double centre, std::int64_t from) {
  const double position = std::clamp(centre - 0.5, 0.0, static_cast<double>(from - 1));
  const auto first = static_cast<std::int64_t>(position);
  const double share = position - static_cast<double>(first);
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

/// One row of the image, resized.
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

Image in_grey(const Image& image) {
  Image grey{.height = image.height, .width = image.width, .channels = 1, .pixels = {}};
  grey.pixels.reserve(image.pixels.size() / 3);
  for (std::size_t i = 0; i + 2 < image.pixels.size(); i += 3) {
    const std::uint8_t* rgb = image.pixels.data() + i;
    grey.pixels.push_back(
        static_cast<std::uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16));
  }
  return grey;
}

Image in_colour(const Image& image) {
  Image colour{.height = image.height, .width = image.width, .channels = 3, .pixels = {}};
  for (const std::uint8_t value : image.pixels) colour.pixels.insert(colour.pixels.end(), 3, value);
  return colour;
}

bool is_grey_or_colour(std::int64_t channels) { return channels == 1 || channels == 3; }

}  // namespace

Image resized(const Image& image, std::int64_t height, std::int64_t width) {
  check(std::min({image.height, image.width, image.channels, height, width}) > 0,
        "cannot resize an image from or to 0 pixels");
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

void swap_light_and_dark(std::span<std::uint8_t> pixels, std::int64_t channels) {
  for (std::size_t i = 0; i < pixels.size(); ++i)
    if (channels != 4 || i % 4 != 3) pixels[i] = static_cast<std::uint8_t>(255 - pixels[i]);
}

std::vector<std::uint8_t> to_sample(const Image& image, const kernels::Shape& sample, bool invert) {
  const bool same = sample.rank() == 3 && image.channels == sample[2];
  check(same || (sample.rank() == 3 && is_grey_or_colour(sample[2]) && is_grey_or_colour(image.channels)),
        "cannot convert an image of " + std::to_string(image.channels) + " channels to a sample of " +
            sample.to_string());
  const Image converted = same ? Image() : sample[2] == 1 ? in_grey(image) : in_colour(image);
  Image small = resized(same ? image : converted, sample[0], sample[1]);
  if (invert) swap_light_and_dark(small.pixels, sample[2]);
  return std::move(small.pixels);
}

bool has_light_border(std::span<const std::uint8_t> pixels, const kernels::Shape& sample) {
  const std::int64_t height = sample[0], width = sample[1];
  std::int64_t sum = 0, count = 0;
  for (std::int64_t row = 0; row < height; ++row)
    for (std::int64_t col = 0; col < width; ++col) {
      if (row > 0 && row + 1 < height && col > 0 && col + 1 < width) continue;
      sum += pixels[static_cast<std::size_t>(row * width + col)];
      ++count;
    }
  return sum > 127 * count;
}

}  // namespace gradring::data
