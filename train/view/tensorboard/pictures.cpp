// SPDX-License-Identifier: Apache-2.0
#include "train/view/tensorboard/pictures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "train/view/page/filters.h"
#include "train/view/page/png.h"

namespace gradring::train::tensorboard {
namespace {

constexpr std::uint8_t kMidGrey = 128;
constexpr std::size_t kGap = 2;  // pixels

}  // namespace

EncodedImage grid_of(const Tiles& tiles, int zoom) {
  const auto enlarged = [zoom](std::int64_t extent) { return static_cast<std::size_t>(extent * zoom); };
  const auto channels = static_cast<std::size_t>(tiles.channels), tile_width = static_cast<std::size_t>(tiles.width);
  const std::size_t height = enlarged(tiles.height), width = enlarged(tiles.width), count = tiles.images.size();
  const auto cols = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const std::size_t rows = (count + cols - 1) / cols;
  const std::size_t grid_height = rows * (height + kGap) - kGap, grid_width = cols * (width + kGap) - kGap;
  std::vector<std::uint8_t> pixels(grid_height * grid_width * channels, kMidGrey);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t top = i / cols * (height + kGap), left = i % cols * (width + kGap);
    for (std::size_t row = 0; row < height; ++row)
      for (std::size_t col = 0; col < width; ++col) {
        const auto step = static_cast<std::size_t>(zoom);
        const auto from = static_cast<std::ptrdiff_t>((row / step * tile_width + col / step) * channels);
        const auto to = static_cast<std::ptrdiff_t>(((top + row) * grid_width + left + col) * channels);
        std::copy_n(tiles.images[i].begin() + from, channels, pixels.begin() + to);
      }
  }
  return {.height = static_cast<std::int64_t>(grid_height),
          .width = static_cast<std::int64_t>(grid_width),
          .channels = tiles.channels,
          .png = page::png_of({.width = static_cast<std::uint32_t>(grid_width),
                               .height = static_cast<std::uint32_t>(grid_height),
                               .channels = static_cast<std::uint32_t>(channels),
                               .pixels = pixels})};
}

bool has_visible_filters(const ParameterValues& parameter) {
  return parameter.shape.size() == 4 && (parameter.shape[1] == 1 || parameter.shape[1] == 3);
}

Tiles filters_of(const ParameterValues& parameter) {
  const std::int64_t channels = parameter.shape[1], height = parameter.shape[2], width = parameter.shape[3];
  const std::vector<double> weights(parameter.values.begin(), parameter.values.end());
  auto filters =
      page::shaded_filters(weights, static_cast<std::size_t>(channels), static_cast<std::size_t>(height * width));
  return {.height = height, .width = width, .channels = channels, .images = std::move(filters.images)};
}

}  // namespace gradring::train::tensorboard
