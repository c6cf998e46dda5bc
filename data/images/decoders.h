// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "data/images/image.h"

namespace gradring::data {

/// The largest file that read_image reads.
inline constexpr std::size_t kLargestImageFile = 256u << 20;

/// The start of an Exif segment of a JPEG, which some programs write into PNGs, too.
inline constexpr std::string_view kExifStart{"Exif\0\0", 6};

/// Decodes a PNG or a JPEG, of which `file` is the whole, and turns it upright. read_image (image.h) says how colours
/// are converted.
///
/// Errors    DataError if it is corrupt or truncated or its header promises more than kMostPixels, before memory is
///           taken for them; NoPngError or NoJpegError if this build lacks the library.
Image decode_png(const std::filesystem::path& path, std::string_view file, Alpha alpha);
Image decode_jpeg(const std::filesystem::path& path, std::string_view file);

/// The bytes of an image file.
///
/// Errors    DataError if it cannot be read or is larger than kLargestImageFile.
std::string read_image_file(const std::filesystem::path& path);

/// read_image of `file`, the bytes of the file at `path`.
///
/// Errors    as read_image.
Image decode_image(const std::filesystem::path& path, std::string_view file, Alpha alpha = Alpha::drop);

/// Errors    DataError if an image of this size has more than kMostPixels.
void check_size(const std::filesystem::path& path, std::int64_t height, std::int64_t width);

/// The orientation in an image's metadata, 1 to 8, as Pillow's getexif finds it: the tag Orientation (SHORT or LONG) in
/// the first directory of `exif`, a TIFF structure with or without kExifStart; where that tag is missing, the first
/// tiff:Orientation in `xmp`. 1, not turned, where neither says a sensible number.
///
/// Cost      linear in the sizes.
/// Source    Exif 2.32 (CIPA DC-008, 2019), 4.6.2 and 4.6.4; TIFF 6.0 (1992), section 2; XMP (ISO 16684-1).
int orientation_of(std::string_view exif, std::string_view xmp);

/// The orientation of a PNG by its chunks eXIf, or else the text "Raw profile type exif" of ImageMagick, and the text
/// "XML:com.adobe.xmp". Chunks with a wrong checksum are ignored.
///
/// Cost      one look at each chunk; at most one text of 1 MiB is inflated.
int png_orientation(std::string_view file);

/// The image as it is to be seen: turned and mirrored as PIL.ImageOps.exif_transpose.
///
/// Errors    InvalidArgument if `orientation` is not of 1 to 8.
Image oriented(Image image, int orientation);

}  // namespace gradring::data
