// SPDX-License-Identifier: Apache-2.0
#include "train/view/page/picture.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>

#include "train/view/page/html.h"

namespace gradring::train::page {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

const Bytef* bytes_of(const std::string& text) { return reinterpret_cast<const Bytef*>(text.data()); }

std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto checksum = static_cast<std::uint32_t>(::crc32(0, bytes_of(body), static_cast<uInt>(body.size())));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(checksum);
}

std::string deflated(const std::string& plain) {
  uLongf size = ::compressBound(plain.size());
  std::string packed(size, '\0');
  ::compress2(reinterpret_cast<Bytef*>(packed.data()), &size, bytes_of(plain), plain.size(), Z_BEST_COMPRESSION);
  packed.resize(size);
  return packed;
}

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::uint8_t shade_of(double weight, double largest) {
  const double share = std::isfinite(weight) && largest > 0 ? weight / largest : 0;
  return static_cast<std::uint8_t>(std::lround(127.5 + 127.5 * share));
}

}  // namespace

std::string png_of(const Picture& picture) {
  const std::size_t row_bytes = std::size_t{picture.width} * picture.channels;
  std::string rows;
  for (std::uint32_t row = 0; row < picture.height; ++row) {
    rows += '\0';  // without a filter
    const auto line = picture.pixels.subspan(row * row_bytes, row_bytes);
    rows.append(line.begin(), line.end());
  }
  const char color_type = picture.channels == 3 ? 2 : 0;
  const std::string head = big_endian(picture.width) + big_endian(picture.height) + std::string{8, color_type, 0, 0, 0};
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", head) + chunk("IDAT", deflated(rows)) + chunk("IEND", "");
}

std::string image_element(const Picture& picture, int shown_width, const std::string& text) {
  const auto height = picture.width == 0 ? 0 : shown_width * picture.height / picture.width;
  return fmt::format(R"(<img class="pixels" width="{}" height="{}" alt="{}" src="data:image/png;base64,{}">)",
                     shown_width, height, escaped(text), base64(png_of(picture)));
}

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
