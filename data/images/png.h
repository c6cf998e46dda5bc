// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "data/images/image.h"
#include "kernels/runtime/error.h"

namespace gradring::data {

/// This build has no libpng. Exit code 3.
class NoPngError : public Error {
 public:
  using Error::Error;
};

/// Reads a PNG of any kind: grey, colour or palette, 1 to 16 bits, interlaced or not. The image has three channels; what is
/// transparent lies on white, as most viewers show it.
///
/// Errors    DataError, naming the file: it cannot be read, is a pipe to which nothing is written, is no PNG, is damaged or
///           cut short, or has more than kMostPixels; NoPngError as require_png.
/// Cost      memory: the file, and 4 bytes a pixel, whatever the file says.
/// Source    PNG, third edition (W3C), by libpng.
Image read_png(const std::filesystem::path& path);

/// No larger image is read: 64 MB.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 24;

/// Errors    NoPngError that says what to install, if this build has no libpng.
void require_png();

/// "1.6.39", or nothing where this build has no libpng.
std::string png_library();

}  // namespace gradring::data
