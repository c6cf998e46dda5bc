// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gradring::train::page {

/// An image with 8 bits per channel, channels innermost, rows from the top.
struct Picture {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 1;  ///< 1: grey; 3: red, green, blue
  std::span<const std::uint8_t> pixels{};
};

/// The picture as the bytes of a PNG file. Needs no libpng, which reads files; zlib suffices to write them.
///
/// Source    PNG, third edition (W3C).
std::string png_of(const Picture& picture);

/// An <img> element that holds the picture, enlarged to `shown_width` pixels without smoothing. `text` describes it, in
/// any characters.
std::string image_element(const Picture& picture, int shown_width, const std::string& text);

/// The filters of a convolution as images of 8 bits per channel.
struct ShadedFilters {
  double largest = 0;                               ///< magnitude of a weight
  std::vector<std::vector<std::uint8_t>> images{};  ///< one per filter, channels innermost
};

/// Mid grey is 0, white the largest magnitude of all filters, black its negative. Weights that are not finite are mid
/// grey and do not count.
///
/// Shapes    weights: [filters, channels, area], as PyTorch orders them; channels and area at least 1.
ShadedFilters shaded_filters(std::span<const double> weights, std::size_t channels, std::size_t area);

}  // namespace gradring::train::page
