// SPDX-License-Identifier: Apache-2.0
#include "data/images/resample.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"

namespace gradring::data {
namespace {

constexpr int kPrecisionBits = 22;  // 8 more for the value and 2 to spare in an i32
constexpr std::int32_t kHalf = 1 << (kPrecisionBits - 1);

/// A new pixel as the weighted sum of consecutive old ones, in fixed point.
struct Taps {
  std::int64_t first = 0;
  std::vector<std::int32_t> weights;
};

/// A triangle around each new pixel's centre on the old axis. The order of the operations in double decides last bits.
std::vector<Taps> triangles(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);
  const double slope = 1.0 / support;
  std::vector<Taps> all;
  all.reserve(static_cast<std::size_t>(to));
  std::vector<double> weights;
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max(static_cast<std::int64_t>(centre - support + 0.5), std::int64_t{0});
    const auto end = std::min(static_cast<std::int64_t>(centre + support + 0.5), from);
    weights.clear();
    double sum = 0;
    for (std::int64_t j = first; j < end; ++j) {
      const double distance = std::abs((static_cast<double>(j) - centre + 0.5) * slope);
      weights.push_back(distance < 1.0 ? 1.0 - distance : 0.0);
      sum += weights.back();
    }
    Taps taps{.first = first, .weights = {}};
    for (const double weight : weights)
      taps.weights.push_back(static_cast<std::int32_t>(0.5 + weight / sum * (1 << kPrecisionBits)));
    all.push_back(std::move(taps));
  }
  return all;
}

std::uint8_t rounded(std::int32_t sum) { return static_cast<std::uint8_t>(std::min(sum >> kPrecisionBits, 255)); }

/// One row; kChannels is known to the compiler so that the sums stay in registers.
template <std::int64_t kChannels>
void mix_row(const std::uint8_t* from, const std::vector<Taps>& cols, std::uint8_t* to) {
  for (const Taps& taps : cols) {
    std::int32_t sums[kChannels];
    std::fill_n(sums, kChannels, kHalf);
    const std::uint8_t* pixel = from + taps.first * kChannels;
    for (const std::int32_t weight : taps.weights)
      for (std::int64_t channel = 0; channel < kChannels; ++channel) sums[channel] += weight * *pixel++;
    for (const std::int32_t sum : sums) *to++ = rounded(sum);
  }
}

Image with_width(const Image& image, std::int64_t width) {
  if (image.width == width) return image;
  Image result{.height = image.height, .width = width, .channels = image.channels, .pixels = {}};
  result.pixels.resize(static_cast<std::size_t>(image.height * width * image.channels));
  const std::vector<Taps> cols = triangles(image.width, width);
  for (std::int64_t row = 0; row < image.height; ++row) {
    const std::uint8_t* from = image.pixels.data() + row * image.width * image.channels;
    std::uint8_t* to = result.pixels.data() + row * width * image.channels;
    image.channels == 1 ? mix_row<1>(from, cols, to) : mix_row<3>(from, cols, to);
  }
  return result;
}

Image with_height(const Image& image, std::int64_t height) {
  if (image.height == height) return image;
  const auto row_bytes = static_cast<std::size_t>(image.width * image.channels);
  Image result{.height = height, .width = image.width, .channels = image.channels, .pixels = {}};
  result.pixels.reserve(static_cast<std::size_t>(height) * row_bytes);
  std::vector<std::int32_t> sums(row_bytes);
  for (const Taps& taps : triangles(image.height, height)) {
    std::ranges::fill(sums, kHalf);
    const std::uint8_t* row = image.pixels.data() + static_cast<std::size_t>(taps.first) * row_bytes;
    for (const std::int32_t weight : taps.weights) {
      for (std::size_t i = 0; i < row_bytes; ++i) sums[i] += weight * row[i];
      row += row_bytes;
    }
    for (const std::int32_t sum : sums) result.pixels.push_back(rounded(sum));
  }
  return result;
}

/// Half of the difference, to the even number where it lies between two, as Python's round.
std::int64_t offset_of(std::int64_t whole, std::int64_t part) {
  const std::int64_t rest = whole - part;
  return rest % 2 == 0 ? rest / 2 : (rest / 2 + 1) / 2 * 2;
}

}  // namespace

Image resized_as_pillow(const Image& image, std::int64_t height, std::int64_t width) {
  check(std::min({image.height, image.width, height, width}) > 0, "cannot resize an image from or to 0 pixels");
  check(image.channels == 1 || image.channels == 3,
        "cannot resize an image of " + std::to_string(image.channels) + " channels");
  return with_height(with_width(image, width), height);
}

Image shorter_side_resized(const Image& image, std::int64_t size) {
  check(std::min(image.height, image.width) > 0, "cannot resize an image from 0 pixels");
  if (image.height < image.width) return resized_as_pillow(image, size, size * image.width / image.height);
  return resized_as_pillow(image, size * image.height / image.width, size);
}

Image centre_crop(const Image& image, std::int64_t height, std::int64_t width) {
  check(height > 0 && width > 0 && height <= image.height && width <= image.width,
        "cannot cut " + std::to_string(height) + " x " + std::to_string(width) + " out of " +
            std::to_string(image.height) + " x " + std::to_string(image.width) + " pixels");
  const std::int64_t top = offset_of(image.height, height), left = offset_of(image.width, width);
  Image crop{.height = height, .width = width, .channels = image.channels, .pixels = {}};
  crop.pixels.reserve(static_cast<std::size_t>(height * width * image.channels));
  for (std::int64_t row = 0; row < height; ++row) {
    const auto from = image.pixels.begin() + ((top + row) * image.width + left) * image.channels;
    crop.pixels.insert(crop.pixels.end(), from, from + width * image.channels);
  }
  return crop;
}

}  // namespace gradring::data
