// SPDX-License-Identifier: Apache-2.0
// jpeglib.h needs FILE and size_t of <cstdio>.
#include <cstdio>

#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>

#include "data/files/byte_source.h"
#include "data/images/decoders.h"

namespace gradring::data {
namespace {

/// A progressive file may ask for its pixels to be visited any number of times. Programs write about ten.
constexpr int kMostScans = 500;
constexpr std::string_view kXmpStart{"http://ns.adobe.com/xap/1.0/\0", 29};

/// Warnings of libjpeg after which pixels are made up.
bool loses_pixels(int warning) {
  return warning == JWRN_JPEG_EOF || warning == JWRN_HIT_MARKER || warning == JWRN_HUFF_BAD_CODE ||
         warning == JWRN_MUST_RESYNC || warning == JWRN_BOGUS_PROGRESSION;
}

/// c * k / 255, rounded, as in Pillow.
unsigned scaled(unsigned c, unsigned k) {
  const unsigned product = c * k + 128;
  return (product + (product >> 8)) >> 8;
}

/// libjpeg's state for one file.
class JpegDecoder {
 public:
  JpegDecoder(const std::filesystem::path& path, std::string_view file) : path_(path), file_(file) {
    jpeg_.err = jpeg_std_error(&errors_);
    jpeg_.client_data = this;
    errors_.error_exit = [](j_common_ptr jpeg) { self(jpeg).stop(); };
    errors_.emit_message = [](j_common_ptr jpeg, int level) {
      if (level < 0 && loses_pixels(jpeg->err->msg_code)) self(jpeg).stop();
    };
    progress_.progress_monitor = [](j_common_ptr jpeg) {
      if (self(jpeg).jpeg_.input_scan_number > kMostScans) self(jpeg).stop();
    };
    run([this] { jpeg_create_decompress(&jpeg_); });
    jpeg_.progress = &progress_;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&jpeg_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  Image decode() {
    run([this] { read_header(); });
    const std::int64_t height = jpeg_.image_height, width = jpeg_.image_width;
    check_size(path_, height, width);
    const bool cmyk = jpeg_.num_components == 4;
    if (!cmyk && jpeg_.num_components != 1 && jpeg_.num_components != 3)
      fail("of " + std::to_string(jpeg_.num_components) + " channels");
    jpeg_.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    stride_ = static_cast<std::size_t>(width) * (cmyk ? 4 : 3);
    pixels_.resize(static_cast<std::size_t>(height) * stride_);
    run([this] { read_rows(); });
    if (cmyk) cmyk_to_rgb();
    return oriented({.height = height, .width = width, .channels = 3, .pixels = std::move(pixels_)},
                    orientation_of(exif_, xmp_));
  }

 private:
  static JpegDecoder& self(j_common_ptr jpeg) { return *static_cast<JpegDecoder*>(jpeg->client_data); }

  /// Runs `step`, out of which libjpeg jumps if it fails: nothing in it may own anything.
  template <class Step>
  void run(Step step) {
    if (setjmp(stopped_)) fail(message_);
    step();
  }

  [[noreturn]] void stop() {
    if (jpeg_.input_scan_number > kMostScans)
      std::snprintf(message_, sizeof message_, "it has more than %d scans", kMostScans);
    else
      errors_.format_message(reinterpret_cast<j_common_ptr>(&jpeg_), message_);
    std::longjmp(stopped_, 1);
  }

  [[noreturn]] void fail(std::string_view why) const {
    throw DataError(path_, "cannot be read as a JPEG (" + std::string(why) + ")",
                    "it is damaged or truncated: copy it again, or open it in an image program and save it as a JPEG");
  }

  void read_header() {
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(file_.data()), file_.size());
    jpeg_set_marker_processor(&jpeg_, JPEG_APP0 + 1, take_metadata);
    jpeg_read_header(&jpeg_, TRUE);
  }

  void read_rows() {
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW row = pixels_.data() + jpeg_.output_scanline * stride_;
      jpeg_read_scanlines(&jpeg_, &row, 1);
    }
  }

  /// Keeps where the first Exif and the last XMP are, as Pillow. A list of all segments, as jpeg_save_markers makes,
  /// takes quadratic time: libjpeg walks through it for each one.
  static boolean take_metadata(j_decompress_ptr jpeg) {
    JpegDecoder& decoder = self(reinterpret_cast<j_common_ptr>(jpeg));
    jpeg_source_mgr& source = *jpeg->src;  // It has the rest of the file in its buffer.
    const std::string_view rest(reinterpret_cast<const char*>(source.next_input_byte), source.bytes_in_buffer);
    const auto byte = [rest](std::size_t at) { return std::size_t{static_cast<unsigned char>(rest[at])}; };
    const std::size_t size = rest.size() < 2 ? 0 : byte(0) << 8 | byte(1);  // It includes its own two bytes.
    if (size < 2 || size > rest.size()) {
      jpeg->err->msg_code = JERR_BAD_LENGTH;
      decoder.stop();
    }
    const std::string_view data = rest.substr(2, size - 2);
    if (decoder.exif_.empty() && data.starts_with(kExifStart)) decoder.exif_ = data;
    if (data.starts_with(kXmpStart)) decoder.xmp_ = data;
    source.skip_input_data(jpeg, static_cast<long>(size));
    return TRUE;
  }

  /// In place. What is stored is 255 - ink, as Adobe's programs do and Pillow takes for granted.
  void cmyk_to_rgb() {
    const std::size_t count = pixels_.size() / 4;
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned light = pixels_[4 * i + 3];
      for (std::size_t channel = 0; channel < 3; ++channel)
        pixels_[3 * i + channel] = static_cast<std::uint8_t>(light - scaled(255u - pixels_[4 * i + channel], light));
    }
    pixels_.resize(3 * count);
  }

  const std::filesystem::path& path_;
  const std::string_view file_;
  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::string_view exif_, xmp_;  ///< The segments, in the file; empty if it has none.
  std::vector<std::uint8_t> pixels_;
  std::size_t stride_ = 0;
  std::jmp_buf stopped_{};
  char message_[JMSG_LENGTH_MAX] = {};
};

}  // namespace

Image decode_jpeg(const std::filesystem::path& path, std::string_view file) { return JpegDecoder(path, file).decode(); }

std::string jpeg_library() {
  constexpr int kVersion = LIBJPEG_TURBO_VERSION_NUMBER;  // 2001005
  return std::to_string(kVersion / 1'000'000) + "." + std::to_string(kVersion / 1000 % 1000) + "." +
         std::to_string(kVersion % 1000);
}

}  // namespace gradring::data
