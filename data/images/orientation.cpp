// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "data/images/decoders.h"
#include "kernels/base/error.h"

namespace gradring::data {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kShort = 3, kLong = 4;  // types of values

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

/// The value of the tag, or 1 if it is of another type; nothing if the directory lacks the tag.
std::optional<std::uint32_t> exif_orientation(std::string_view exif) {
  while (exif.starts_with(kExifStart)) exif.remove_prefix(kExifStart.size());
  if (!exif.starts_with("II") && !exif.starts_with("MM")) return std::nullopt;
  const Tiff tiff(exif);
  const std::size_t directory = tiff.u32(4);
  const std::size_t entries = tiff.u16(directory);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;  // tag, type, count, value
    if (tiff.u16(entry) != kOrientationTag) continue;
    const std::uint32_t type = tiff.u16(entry + 2);
    return type == kShort ? tiff.u16(entry + 8) : type == kLong ? tiff.u32(entry + 8) : 1;
  }
  return std::nullopt;
}

/// The first match of Pillow's pattern tiff:Orientation(="|>)([0-9]), or 1.
std::uint32_t xmp_orientation(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (std::size_t at = xmp.find(kName); at != xmp.npos; at = xmp.find(kName, at)) {
    at += kName.size();
    const std::string_view rest = xmp.substr(at, 3);
    const std::size_t digit = rest.starts_with("=\"") ? 2 : 1;
    if ((digit == 2 || rest.starts_with(">")) && digit < rest.size() && rest[digit] >= '0' && rest[digit] <= '9')
      return static_cast<std::uint32_t>(rest[digit] - '0');
  }
  return 1;
}

std::uint32_t big_endian_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

const Bytef* bytes_of(std::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

/// A text chunk of a PNG: its type, and its data after the keyword.
struct PngText {
  std::string_view type, data;

  /// The text; empty if it is damaged, or compressed and longer than Pillow's limit of 1 MiB.
  std::string text() const {
    std::string_view rest = data;
    bool compressed = type == "zTXt";
    if (compressed) rest = rest.substr(std::min<std::size_t>(1, rest.size()));  // the method
    if (type == "iTXt") {
      compressed = rest.starts_with('\1');
      rest = rest.substr(std::min<std::size_t>(2, rest.size()));  // flag and method
      for (int i = 0; i < 2; ++i) rest = rest.substr(std::min(rest.find('\0'), rest.size() - 1) + 1);  // two names
    }
    if (!compressed) return std::string(rest);
    uLongf size = 1 << 20;
    std::string inflated(size, 0);
    if (::uncompress(reinterpret_cast<Bytef*>(inflated.data()), &size, bytes_of(rest), rest.size()) != Z_OK) return {};
    return inflated.substr(0, size);
  }
};

/// The bytes of a raw profile: a line break, its name, its size, then hexadecimal digits in lines.
std::string decode_raw_profile(std::string_view text) {
  for (int line = 0; line < 3; ++line) text = text.substr(std::min(text.find('\n'), text.size() - 1) + 1);
  std::string digits, bytes;
  for (const char c : text)
    if (std::isxdigit(static_cast<unsigned char>(c))) digits += c;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

}  // namespace

int orientation_of(std::string_view exif, std::string_view xmp) {
  const std::optional<std::uint32_t> tag = exif_orientation(exif);
  const std::uint32_t value = tag ? *tag : xmp_orientation(xmp);
  return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
}

int png_orientation(std::string_view file) {
  std::string_view exif;
  PngText raw_profile, xmp;
  std::size_t length = 0;
  for (std::size_t at = 8; at + 12 <= file.size(); at += 12 + length) {  // length, type, data, checksum
    length = big_endian_at(file, at);
    if (length > file.size() - at - 12) break;
    const std::string_view type = file.substr(at + 4, 4), data = file.substr(at + 8, length);
    if (type != "eXIf" && type != "tEXt" && type != "zTXt" && type != "iTXt") continue;
    if (::crc32_z(0, bytes_of(type), 4 + length) != big_endian_at(file, at + 8 + length)) continue;
    const std::size_t end = data.find('\0');
    const std::string_view keyword = data.substr(0, end);
    if (type == "eXIf")
      exif = data;
    else if (end != data.npos && keyword == "Raw profile type exif")
      raw_profile = {type, data.substr(end + 1)};
    else if (end != data.npos && keyword == "XML:com.adobe.xmp")
      xmp = {type, data.substr(end + 1)};
  }
  const std::string decoded = exif.empty() ? decode_raw_profile(raw_profile.text()) : std::string();
  return orientation_of(exif.empty() ? decoded : exif, xmp.text());
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
