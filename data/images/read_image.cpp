// SPDX-License-Identifier: Apache-2.0
#include "data/files/byte_source.h"
#include "data/files/mistaken_file.h"
#include "data/images/decoders.h"
#include "data/images/image.h"
#include "kernels/base/file.h"

namespace gradring::data {
namespace {

using namespace std::string_view_literals;

/// Formats that often stand in the place of a PNG or JPEG.
struct OtherFormat {
  std::size_t at;  ///< where its magic bytes begin
  std::string_view magic;
  std::string_view name;
};

constexpr OtherFormat kOthers[] = {{0, "GIF8", "a GIF"},
                                   {8, "WEBP", "a WebP image"},
                                   {0, "BM", "a BMP image"},
                                   {0, "II*\0"sv, "a TIFF image"},
                                   {0, "MM\0*"sv, "a TIFF image"},
                                   {4, "ftypavif", "an AVIF image"},
                                   {4, "ftyp", "a HEIF image or a video"}};
constexpr std::string_view kSaveAgain = "save it as a PNG or JPEG";

[[noreturn]] void reject(const std::filesystem::path& path, std::string_view file) {
  if (file.empty()) throw DataError(path, "is empty", "copy or download the image again");
  for (const OtherFormat& other : kOthers)
    if (file.size() > other.at && file.substr(other.at).starts_with(other.magic))
      throw DataError(path, "is " + std::string(other.name), kSaveAgain);
  if (const auto mistaken = find_mistaken_file(file.substr(0, kStartBytes)))
    throw DataError(path, mistaken->what, mistaken->advice);
  throw DataError(path, "begins neither as a PNG nor as a JPEG", kSaveAgain);
}

}  // namespace

// Not read by a decoder, which would block on a pipe without a writer.
std::string read_image_file(const std::filesystem::path& path) {
  try {
    return read_small_file(path, kLargestImageFile);
  } catch (const ReadError& error) {
    throw DataError(path, error.what(), "check that it is a PNG or JPEG file and that you may read it");
  }
}

Image decode_image(const std::filesystem::path& path, std::string_view file, Alpha alpha) {
  if (file.starts_with("\x89PNG\r\n\x1a\n")) return decode_png(path, file, alpha);
  if (file.starts_with("\xff\xd8\xff")) return decode_jpeg(path, file);
  reject(path, file);
}

Image read_image(const std::filesystem::path& path, Alpha alpha) {
  return decode_image(path, read_image_file(path), alpha);
}

void check_size(const std::filesystem::path& path, std::int64_t height, std::int64_t width) {
  if (height > kMostPixels / width)
    throw DataError(path, "has " + std::to_string(width) + " x " + std::to_string(height) + " pixels",
                    "make it smaller: the limit is " + std::to_string(kMostPixels));
}

std::string decoder_versions() { return "libpng " + png_library() + " and libjpeg-turbo " + jpeg_library(); }

}  // namespace gradring::data
