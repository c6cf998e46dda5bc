// SPDX-License-Identifier: Apache-2.0
#include "data/images/image.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"

namespace gradring::data {
namespace {

constexpr int kPrecisionBits = 22;  // 8 more for the value and 2 to spare in an i32
constexpr std::int32_t kHalf = 1 << (kPrecisionBits - 1);

/// Consecutive new pixels of an axis, each the weighted sum of consecutive old ones, in fixed point.
struct Taps {
  struct Tap {
    std::int64_t first = 0;  ///< old pixel
    std::int64_t count = 0;
  };
  std::vector<Tap> taps;
  std::vector<std::int32_t> weights;  ///< of the first tap, of the second, ...

  std::int64_t begin() const { return taps.front().first; }
  std::int64_t end() const { return taps.back().first + taps.back().count; }
};

/// Part of an axis.
struct Span {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// As Pillow: a negative one towards 0.
std::int64_t nearest(double x) {
  return static_cast<std::int64_t>(x + 0.5);  // NOLINT(bugprone-incorrect-roundings)
}

/// A triangle around each new pixel's centre on the old axis. The order of the operations in double decides last bits.
Taps triangles(std::int64_t from, std::int64_t to, Span part) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);
  const double slope = 1.0 / support;
  Taps all;
  all.taps.reserve(static_cast<std::size_t>(part.count));
  std::vector<double> weights;
  for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max(nearest(centre - support), std::int64_t{0});
    const auto end = std::min(nearest(centre + support), from);
    weights.clear();
    double sum = 0;
    for (std::int64_t j = first; j < end; ++j) {
      const double distance = std::abs((static_cast<double>(j) - centre + 0.5) * slope);
      weights.push_back(distance < 1.0 ? 1.0 - distance : 0.0);
      sum += weights.back();
    }
    for (const double weight : weights)
      all.weights.push_back(static_cast<std::int32_t>(nearest(weight / sum * (1 << kPrecisionBits))));
    all.taps.push_back({.first = first, .count = end - first});
  }
  return all;
}

std::uint8_t rounded(std::int32_t sum) { return static_cast<std::uint8_t>(std::min(sum >> kPrecisionBits, 255)); }

/// One row; kChannels is known to the compiler so that the sums stay in registers.
template <std::int64_t kChannels>
void mix_row(const std::uint8_t* from, const Taps& cols, std::uint8_t* to) {
  const std::int32_t* weight = cols.weights.data();
  for (const Taps::Tap& tap : cols.taps) {
    std::int32_t sums[kChannels];
    std::fill_n(sums, kChannels, kHalf);
    const std::uint8_t* pixel = from + tap.first * kChannels;
    for (std::int64_t i = 0; i < tap.count; ++i, ++weight)
      for (std::int64_t channel = 0; channel < kChannels; ++channel) sums[channel] += *weight * *pixel++;
    for (const std::int32_t sum : sums) *to++ = rounded(sum);
  }
}

/// These rows and columns of an image, as they are.
Image part_of(const Image& image, Span rows, Span cols) {
  Image part{.height = rows.count, .width = cols.count, .channels = image.channels, .pixels = {}};
  part.pixels.reserve(static_cast<std::size_t>(rows.count * cols.count * image.channels));
  for (std::int64_t row = rows.first; row < rows.first + rows.count; ++row) {
    const auto from = image.pixels.begin() + (row * image.width + cols.first) * image.channels;
    part.pixels.insert(part.pixels.end(), from, from + cols.count * image.channels);
  }
  return part;
}

/// These columns of an image that is `width` wide, of these old rows.
Image with_columns(const Image& image, std::int64_t width, Span cols, Span rows) {
  if (image.width == width) return part_of(image, rows, cols);
  const Taps taps = triangles(image.width, width, cols);
  Image result{.height = rows.count, .width = cols.count, .channels = image.channels, .pixels = {}};
  result.pixels.resize(static_cast<std::size_t>(rows.count * cols.count * image.channels));
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const std::uint8_t* from = image.pixels.data() + (rows.first + row) * image.width * image.channels;
    std::uint8_t* to = result.pixels.data() + row * cols.count * image.channels;
    image.channels == 1 ? mix_row<1>(from, taps, to) : mix_row<3>(from, taps, to);
  }
  return result;
}

/// These rows of an image that begins with the old row `first`.
Image with_rows(const Image& image, const Taps& rows, std::int64_t first) {
  const auto row_bytes = static_cast<std::size_t>(image.width * image.channels);
  Image result{.height = std::ssize(rows.taps), .width = image.width, .channels = image.channels, .pixels = {}};
  result.pixels.resize(rows.taps.size() * row_bytes);
  std::vector<std::int32_t> sums(row_bytes);
  const std::int32_t* weight = rows.weights.data();
  std::uint8_t* to = result.pixels.data();
  for (const Taps::Tap& tap : rows.taps) {
    std::ranges::fill(sums, kHalf);
    const std::uint8_t* row = image.pixels.data() + static_cast<std::size_t>(tap.first - first) * row_bytes;
    for (std::int64_t i = 0; i < tap.count; ++i, ++weight, row += row_bytes)
      for (std::size_t j = 0; j < row_bytes; ++j) sums[j] += *weight * row[j];
    to = std::ranges::transform(sums, to, rounded).out;
  }
  return result;
}

/// These rows and columns of an image that is resized to height x width.
Image resized_part(const Image& image, std::int64_t height, std::int64_t width, Span rows, Span cols) {
  check(std::min({image.height, image.width, height, width}) > 0, "cannot resize an image from or to 0 pixels");
  check(image.channels == 1 || image.channels == 3,
        "cannot resize an image of " + std::to_string(image.channels) + " channels");
  if (image.height == height) return with_columns(image, width, cols, rows);
  const Taps taps = triangles(image.height, height, rows);
  const Span old_rows{.first = taps.begin(), .count = taps.end() - taps.begin()};
  return with_rows(with_columns(image, width, cols, old_rows), taps, old_rows.first);
}

/// Half of the difference, to the even number where it lies between two, as Python's round.
std::int64_t offset_of(std::int64_t whole, std::int64_t part) {
  const std::int64_t rest = whole - part;
  return rest % 2 == 0 ? rest / 2 : (rest / 2 + 1) / 2 * 2;
}

struct Size {
  std::int64_t height = 0, width = 0;
};

Size size_with_shorter_side(const Image& image, std::int64_t size) {
  check(std::min(image.height, image.width) > 0, "cannot resize an image from 0 pixels");
  if (image.height < image.width) return {.height = size, .width = size * image.width / image.height};
  return {.height = size * image.height / image.width, .width = size};
}

}  // namespace

Image resized_as_pillow(const Image& image, std::int64_t height, std::int64_t width) {
  return resized_part(image, height, width, {.first = 0, .count = height}, {.first = 0, .count = width});
}

Image resized_middle(const Image& image, std::int64_t size, std::int64_t crop) {
  check(crop > 0 && crop <= size,
        "cannot cut " + std::to_string(crop) + " pixels out of a side of " + std::to_string(size));
  const auto [height, width] = size_with_shorter_side(image, size);
  return resized_part(image, height, width, {.first = offset_of(height, crop), .count = crop},
                      {.first = offset_of(width, crop), .count = crop});
}

}  // namespace gradring::data
