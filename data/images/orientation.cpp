// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "data/images/decoders.h"
#include "kernels/base/error.h"

namespace gradring::data {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kShort = 3;

/// Unsigned numbers of a TIFF structure in its byte order; 0 beyond its end.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : bytes_(bytes), little_(bytes.starts_with("II")) {}

  std::uint32_t u16(std::size_t at) const { return number(at, 2); }
  std::uint32_t u32(std::size_t at) const { return number(at, 4); }

 private:
  std::uint32_t number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes_[at + (little_ ? size - 1 - i : i)]);
    return value;
  }

  std::string_view bytes_;
  bool little_;
};

}  // namespace

int orientation_of(std::string_view exif) {
  if (!exif.starts_with("II") && !exif.starts_with("MM")) return 1;
  const Tiff tiff(exif);
  const std::size_t directory = tiff.u32(4);
  const std::size_t entries = tiff.u16(directory);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;  // tag, type, count, value
    if (tiff.u16(entry) != kOrientationTag) continue;
    const std::uint32_t value = tiff.u16(entry + 8);
    return tiff.u16(entry + 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Image oriented(Image image, int orientation) {
  check(orientation >= 1 && orientation <= 8, "an orientation is 1 to 8, not " + std::to_string(orientation));
  if (orientation == 1) return image;
  const bool transpose = orientation >= 5;
  const bool flip_rows = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool flip_cols = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Image turned{.height = transpose ? image.width : image.height,
               .width = transpose ? image.height : image.width,
               .channels = image.channels,
               .pixels = {}};
  turned.pixels.resize(image.pixels.size());
  auto to = turned.pixels.begin();
  for (std::int64_t row = 0; row < turned.height; ++row)
    for (std::int64_t col = 0; col < turned.width; ++col) {
      const std::int64_t r = transpose ? col : row, c = transpose ? row : col;
      const std::int64_t old_row = flip_rows ? image.height - 1 - r : r;
      const std::int64_t old_col = flip_cols ? image.width - 1 - c : c;
      const auto from = image.pixels.begin() + (old_row * image.width + old_col) * image.channels;
      to = std::copy_n(from, image.channels, to);
    }
  return turned;
}

}  // namespace gradring::data
