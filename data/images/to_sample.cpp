// SPDX-License-Identifier: Apache-2.0
#include "data/images/to_sample.h"

#include "data/images/resize.h"
#include "kernels/runtime/error.h"

namespace gradring::data {
namespace {

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

std::vector<std::uint8_t> to_sample(const Image& image, const kernels::Shape& sample, bool invert) {
  check(sample.rank() == 3 && is_grey_or_colour(sample[2]) && is_grey_or_colour(image.channels),
        "no image becomes a sample of " + sample.to_string());
  const bool same = image.channels == sample[2];
  const Image converted = same ? Image() : sample[2] == 1 ? in_grey(image) : in_colour(image);
  Image small = resized(same ? image : converted, sample[0], sample[1]);
  if (invert)
    for (std::uint8_t& value : small.pixels) value = static_cast<std::uint8_t>(255 - value);
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
