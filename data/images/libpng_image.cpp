// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "data/files/byte_source.h"
#include "data/images/decoders.h"

namespace gradring::data {
namespace {

/// libpng's state for one file. Its simplified interface would convert by the file's gamma, which Pillow does not.
class PngDecoder {
 public:
  PngDecoder(const std::filesystem::path& path, std::string_view file, Alpha alpha)
      : path_(path), rest_(file), alpha_(alpha) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, stop, ignore);
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (!info_) {
      png_destroy_read_struct(&png_, &info_, nullptr);
      throw Error("libpng cannot start: out of memory, or another libpng than this program was built with");
    }
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  Image decode() {
    run([this] { read_header(); });
    const std::int64_t height = png_get_image_height(png_, info_), width = png_get_image_width(png_, info_);
    check_size(path_, height, width);
    run([this] { prepare(); });
    const std::int64_t channels = png_get_channels(png_, info_), row_bytes = width * channels;
    if (static_cast<std::int64_t>(png_get_rowbytes(png_, info_)) != row_bytes) fail("of an unknown kind");
    Image image{.height = height, .width = width, .channels = channels, .pixels = {}};
    image.pixels.resize(static_cast<std::size_t>(height * row_bytes));
    for (std::int64_t row = 0; row < height; ++row) rows_.push_back(image.pixels.data() + row * row_bytes);
    run([this] { png_read_image(png_, rows_.data()); });
    run([this] { png_read_end(png_, info_); });
    return image;
  }

 private:
  /// Runs `step`, out of which libpng jumps if it fails: nothing in it may own anything.
  template <class Step>
  void run(Step step) {
    if (setjmp(stopped_)) fail(message_);
    step();
  }

  /// libpng skips every chunk that pixels do not need: it would copy its list of texts again for each few of them.
  void read_header() {
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_size limits the product
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_chunk_malloc_max(png_, std::max<std::size_t>(rest_.size(), 1024));  // lengths may lie
    png_set_benign_errors(png_, 1);
    png_set_read_fn(png_, this, next_bytes);
    png_read_info(png_, info_);
  }

  /// Converts to three or four channels of 8 bits.
  void prepare() {
    png_set_palette_to_rgb(png_);
    if (!(png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR)) png_set_expand_gray_1_2_4_to_8(png_);
    png_set_strip_16(png_);
    if (alpha_ == Alpha::drop)
      png_set_strip_alpha(png_);
    else if (png_get_valid(png_, info_, PNG_INFO_tRNS))
      png_set_tRNS_to_alpha(png_);
    png_set_gray_to_rgb(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  [[noreturn]] void fail(std::string_view why) const {
    throw DataError(path_, "cannot be read as a PNG (" + std::string(why) + ")",
                    "open it in an image program and save it as a PNG again");
  }

  static void stop(png_structp png, png_const_charp message) {
    auto* const self = static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::strncpy(self->message_, message, sizeof self->message_ - 1);
    std::longjmp(self->stopped_, 1);
  }
  static void ignore(png_structp, png_const_charp) {}

  static void next_bytes(png_structp png, png_bytep to, std::size_t size) {
    auto* const self = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (size > self->rest_.size()) png_error(png, "it is truncated");
    std::memcpy(to, self->rest_.data(), size);
    self->rest_.remove_prefix(size);
  }

  const std::filesystem::path& path_;
  std::string_view rest_;  ///< The file's bytes that libpng has not yet taken.
  const Alpha alpha_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::vector<png_bytep> rows_;
  std::jmp_buf stopped_{};
  char message_[128] = {};
};

}  // namespace

Image decode_png(const std::filesystem::path& path, std::string_view file, Alpha alpha) {
  return oriented(PngDecoder(path, file, alpha).decode(), png_orientation(file));
}

std::string png_library() { return PNG_LIBPNG_VER_STRING; }

}  // namespace gradring::data
