// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include <string_view>

#include "data/files/byte_source.h"
#include "data/images/decoders.h"

namespace gradring::data {
namespace {

constexpr const char* kPngAdvice = "open it in an image program and save it as a PNG again";

/// Whether a chunk's length exceeds the file. libpng would allocate that length, up to 2 GiB, before it reads the
/// chunk.
bool promises_more_than_it_has(std::string_view file) {
  if (!file.starts_with("\x89PNG")) return false;
  const auto byte = [file](std::size_t at) { return std::uint64_t{static_cast<unsigned char>(file[at])}; };
  for (std::size_t at = 8; at + 8 <= file.size();) {  // behind the signature: length, type, data, checksum
    const std::uint64_t length = byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3);
    if (file.substr(at + 4, 4) == "IEND") return false;
    if (length > file.size() - at - 8) return true;
    at += 12 + length;
  }
  return false;
}

/// libpng's state for one file. Its simplified interface neither longjmps nor prints.
class Reading {
 public:
  explicit Reading(const std::filesystem::path& path) : path_(path), file_(read_image_file(path)) {
    if (promises_more_than_it_has(file_)) throw DataError(path_, "is a truncated or damaged PNG", kPngAdvice);
    image_.version = PNG_IMAGE_VERSION;
    if (!png_image_begin_read_from_memory(&image_, file_.data(), file_.size())) fail();
    image_.format = PNG_FORMAT_RGBA;
    image_.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  }
  ~Reading() { png_image_free(&image_); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  std::int64_t height() const { return image_.height; }
  std::int64_t width() const { return image_.width; }

  std::vector<std::uint8_t> rgba() {
    std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(image_));
    if (!png_image_finish_read(&image_, nullptr, pixels.data(), 0, nullptr)) fail();
    return pixels;
  }

 private:
  [[noreturn]] void fail() const {
    throw DataError(path_, "cannot be read as a PNG (" + std::string(image_.message) + ")", kPngAdvice);
  }

  const std::filesystem::path& path_;
  const std::string file_;
  png_image image_{};
};

std::uint8_t over_white(unsigned value, unsigned alpha) {
  return static_cast<std::uint8_t>((value * alpha + 255 * (255 - alpha) + 127) / 255);
}

/// RGBA to RGB, in place.
void blend_with_white(std::vector<std::uint8_t>& pixels) {
  const std::size_t count = pixels.size() / 4;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t channel = 0; channel < 3; ++channel)
      pixels[3 * i + channel] = over_white(pixels[4 * i + channel], pixels[4 * i + 3]);
  pixels.resize(3 * count);
}

}  // namespace

void require_png() {}

Image read_png(const std::filesystem::path& path) {
  Reading reading(path);
  check_size(path, reading.height(), reading.width());
  Image image{.height = reading.height(), .width = reading.width(), .channels = 3, .pixels = reading.rgba()};
  blend_with_white(image.pixels);
  return image;
}

std::string png_library() { return PNG_LIBPNG_VER_STRING; }

}  // namespace gradring::data
