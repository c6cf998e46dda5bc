// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace gradring::data {

/// A picture of any size, 8 bits a channel, channels innermost, row by row from the top.
struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;  ///< 1: grey; 3: red, green, blue
  std::vector<std::uint8_t> pixels;

  std::uint8_t at(std::int64_t row, std::int64_t col, std::int64_t channel) const {
    return pixels[static_cast<std::size_t>((row * width + col) * channels + channel)];
  }
};

}  // namespace gradring::data
