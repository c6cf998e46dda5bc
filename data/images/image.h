// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/runtime/shape.h"

namespace gradring::data {

/// An image with 8 bits per channel, channels innermost, rows from the top.
struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;  ///< 1: grey; 3: red, green, blue; 4: and alpha
  std::vector<std::uint8_t> pixels;

  std::uint8_t at(std::int64_t row, std::int64_t col, std::int64_t channel) const {
    return pixels[static_cast<std::size_t>((row * width + col) * channels + channel)];
  }
};

/// This build has no libpng. Exit code 3.
class NoPngError : public Error, public ExitsWith<kEnvironment> {
 public:
  using Error::Error;
};

/// This build has no libjpeg-turbo. Exit code 3.
class NoJpegError : public Error, public ExitsWith<kEnvironment> {
 public:
  using Error::Error;
};

/// The largest image that is read, such as a photograph of 24 megapixels: 134 MB as RGBA.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 25;

/// Whether the transparency of an image becomes a channel.
enum class Alpha : std::uint8_t { drop, keep };

/// Reads a PNG or a JPEG, told by its first bytes, as PIL.Image.open, ImageOps.exif_transpose and convert('RGB') of
/// Pillow 13.0. The image has three channels; with Alpha::keep, a PNG with transparency has four, as by
/// convert('RGBA'). A JPEG of four channels holds inverted CMYK; the orientation in Exif or XMP is applied; gamma and
/// colour profiles are not. Unlike Pillow, 16-bit grey keeps its upper 8 bits instead of being clipped at 255, and a
/// JPEG whose damage leaves pixels undefined is rejected.
///
/// Threads   safe on different images.
/// Errors    DataError if the file cannot be read, is of another format, is corrupt or truncated, or has more than
///           kMostPixels, which its header says before memory is taken; NoPngError, NoJpegError.
/// Cost      time linear in the file and its pixels; memory: the file, at most 256 MiB, and 4 bytes per pixel; 12 for a
///           progressive JPEG; twice 3, or twice 4, if turned.
/// Source    ISO/IEC 10918-1 (JPEG, 1994), by libjpeg-turbo; PNG, third edition (W3C), by libpng.
Image read_image(const std::filesystem::path& path, Alpha alpha = Alpha::drop);

/// "1.6.39"; empty if this build has no libpng.
std::string png_library();

/// "2.1.5" of libjpeg-turbo; empty if this build has none.
std::string jpeg_library();

/// "libpng 1.6.39 and libjpeg-turbo 2.1.5": equal versions decode equal pixels.
std::string decoder_versions();

/// Resizes each axis by itself: shrinking averages the covered area, growing interpolates linearly between pixel
/// centres.
///
/// Errors    InvalidArgument if either size is empty.
/// Numerics  weights and sums in double, rounded once to nearest; an axis of unchanged size is copied.
Image resized(const Image& image, std::int64_t height, std::int64_t width);

/// Resizes as PIL.Image.resize((width, height), BILINEAR) and torchvision's Resize of a PIL image: a triangle as wide
/// as the shrinking, so that it antialiases.
///
/// Errors    InvalidArgument if either size is empty.
/// Numerics  the bits of Pillow up to 12: weights with 22 bits after the point, columns first, rounded to 8 bits after
///           each axis; an axis of unchanged size is copied. Pillow 13 begins with the rows where that is less work,
///           which changes some bytes by 1.
/// Cost      (old height x new width x shrinking + new height x new width x shrinking) x channels products.
/// Source    Pillow's documented filter; that its bits are met is tested against Pillow itself.
/// Example   tests/data/images/resample_test.cpp
Image resized_as_pillow(const Image& image, std::int64_t height, std::int64_t width);

/// torchvision's Resize(size), CenterCrop(crop) of a PIL image: the shorter side becomes `size`, the other keeps the
/// proportion, rounded down; of that the crop x crop pixels in the middle, with an odd rest cut so that the offset is
/// even. Pixels that are cut off are not computed.
///
/// Errors    InvalidArgument as above, or if `crop` is not in 1 .. size.
/// Cost      memory: 3 x crop bytes for each old row that is needed, however narrow the image is.
Image resized_middle(const Image& image, std::int64_t size, std::int64_t crop);

/// Replaces each value x by 255 - x, except alpha, which is the last of four channels.
void swap_light_and_dark(std::span<std::uint8_t> pixels, std::int64_t channels);

/// The pixels of an image in a dataset's sample size and channels, with light and dark swapped if `invert`. Colours
/// become grey as in PIL and torchvision: (19595 R + 38470 G + 7471 B) / 65536, rounded.
///
/// Shapes    image and sample ([height, width, channels]): one channel or three, or both the same number.
/// Errors    InvalidArgument for other channels.
std::vector<std::uint8_t> to_sample(const Image& image, const kernels::Shape& sample, bool invert);

/// Whether the border of a grey sample is light on average: dark digits on paper, where MNIST has light on dark.
bool has_light_border(std::span<const std::uint8_t> pixels, const kernels::Shape& sample);

}  // namespace gradring::data
