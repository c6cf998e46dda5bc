// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>

#include "data/error.h"
#include "data/files/byte_source.h"

namespace gradring::data {
namespace {

constexpr const char* kAdvice = "the download is damaged: delete the file and get it again";

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(const std::filesystem::path& path) : path_(path), file_(open_plain(path)) {
    constexpr int kGzipAlone = 15 + 16;  // the largest window, a gzip header demanded
    if (inflateInit2(&inflater_, kGzipAlone) != Z_OK) throw std::bad_alloc();
  }
  ~GzipSource() override { inflateEnd(&inflater_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  std::size_t read(std::span<std::uint8_t> out) override {
    std::size_t filled = 0;
    while (filled < out.size() && !ended_) filled += inflate_some(out.subspan(filled));
    return filled;
  }

  /// Deflate cannot shrink more than 1032 : 1.
  std::uint64_t most_bytes() const override { return file_->most_bytes() * 1032; }

 private:
  std::size_t inflate_some(std::span<std::uint8_t> out) {
    if (inflater_.avail_in == 0) refill();
    const std::size_t room = std::min<std::size_t>(out.size(), 1u << 30);
    inflater_.next_out = out.data();
    inflater_.avail_out = static_cast<uInt>(room);
    const int result = inflate(&inflater_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result != Z_OK && result != Z_STREAM_END)
      throw DataError(path_,
                      std::string("is not a sound .gz file (") + (inflater_.msg ? inflater_.msg : "no reason") + ")",
                      kAdvice);
    if (result == Z_STREAM_END) finish();
    return room - inflater_.avail_out;
  }

  void refill() {
    inflater_.next_in = input_.data();
    inflater_.avail_in = static_cast<uInt>(file_->read(input_));
    if (inflater_.avail_in == 0) throw DataError(path_, "ends in the middle of its compressed data", kAdvice);
  }

  /// zlib has compared checksum and length; nothing may follow.
  void finish() {
    ended_ = true;
    std::array<std::uint8_t, 1> more{};
    if (inflater_.avail_in > 0 || file_->read(more) > 0)
      throw DataError(path_, "has bytes after the end of its compressed data", kAdvice);
  }

  std::filesystem::path path_;
  std::unique_ptr<ByteSource> file_;
  z_stream inflater_{};
  std::array<std::uint8_t, 64 * 1024> input_{};
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_gzip(const std::filesystem::path& path) { return std::make_unique<GzipSource>(path); }

}  // namespace gradring::data
