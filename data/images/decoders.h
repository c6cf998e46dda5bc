// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "data/images/image.h"

namespace gradring::data {

/// The largest file that read_image and read_png read.
inline constexpr std::size_t kLargestImageFile = 256u << 20;

/// What a file's decoder yields.
struct DecodedImage {
  Image image;       ///< three channels, as stored: not yet turned
  std::string exif;  ///< the TIFF structure of its EXIF; empty if it has none
};

/// Decodes a PNG or a JPEG, of which `file` is the whole. read_image (image.h) says how colours are converted.
///
/// Errors    DataError if it is corrupt or truncated or its header promises more than kMostPixels, before memory is
///           taken for them; NoPngError or NoJpegError if this build lacks the library.
DecodedImage decode_png(const std::filesystem::path& path, std::string_view file);
DecodedImage decode_jpeg(const std::filesystem::path& path, std::string_view file);

/// The bytes of an image file.
///
/// Errors    DataError if it cannot be read or is larger than kLargestImageFile.
std::string read_image_file(const std::filesystem::path& path);

/// read_image of `file`, the bytes of the file at `path`.
///
/// Errors    as read_image.
Image decode_image(const std::filesystem::path& path, std::string_view file);

/// Errors    DataError if an image of this size has more than kMostPixels.
void check_size(const std::filesystem::path& path, std::int64_t height, std::int64_t width);

/// The tag Orientation of an EXIF's first directory, 1 to 8; 1, as it lies, if that is missing or damaged.
///
/// Source    Exif 2.32 (CIPA DC-008, 2019), 4.6.2 and 4.6.4; TIFF 6.0 (1992), section 2.
int orientation_of(std::string_view exif);

/// The image as it is to be seen: turned and mirrored as PIL.ImageOps.exif_transpose.
///
/// Errors    InvalidArgument if `orientation` is not of 1 to 8.
Image oriented(Image image, int orientation);

}  // namespace gradring::data
