// SPDX-License-Identifier: Apache-2.0
#include "data/files/byte_source.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <new>
#include <string>
#include <system_error>

#include "kernels/base/available_memory.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

const char* advice_on(int error) {
  if (error == EMFILE || error == ENFILE) return "raise ulimit -n";
  if (error == ENOMEM) return "free memory";
  return "check its disk";
}

/// Throws std::system_error if the system is at fault rather than the file. The two have different exit codes: 3 and 4.
void throw_if_system_failed(const fs::path& path, std::string_view what, const std::error_code& error) {
  constexpr int kFailures[] = {EIO, EINTR, ESTALE, EMFILE, ENFILE, ENOMEM, ENOLINK, ETIMEDOUT, EHOSTDOWN};
  if (error.category() == std::generic_category() && std::ranges::count(kFailures, error.value()) > 0)
    throw std::system_error(error, path.string() + ": " + std::string(what) + "; " + advice_on(error.value()));
}

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(const fs::path& path) : path_(path) {
    std::error_code error;
    bytes_ = fs::file_size(path, error);  // fails for folders, too
    if (!error) file_.open(path, std::ios::binary);
    if (!error && !file_) error = std::error_code(errno, std::generic_category());
    throw_if_system_failed(path, "cannot be opened", error);
    if (error)
      throw DataError(path, "cannot be opened (" + error.message() + ")",
                      "check that it is a file and that you may read it");
  }

  std::size_t read(std::span<std::uint8_t> out) override {
    file_.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    if (file_.bad()) throw_if_system_failed(path_, "cannot be read", std::make_error_code(std::errc::io_error));
    return static_cast<std::size_t>(file_.gcount());
  }

  std::uint64_t most_bytes() const override { return bytes_; }

 private:
  fs::path path_;
  std::ifstream file_;
  std::uint64_t bytes_ = 0;
};

class GzipSource final : public ByteSource {
 public:
  static constexpr std::uint8_t kFirstByte = 0x1f, kSecondByte = 0x8b;

  explicit GzipSource(const fs::path& path) : path_(path), file_(open_plain(path)) {
    constexpr int kGzipOnly = 15 + 16;  // the largest window; 16 makes zlib require a gzip header
    if (inflateInit2(&inflater_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~GzipSource() override { inflateEnd(&inflater_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  std::size_t read(std::span<std::uint8_t> out) override {
    std::size_t filled = 0;
    while (filled < out.size() && !ended_) filled += inflate_some(out.subspan(filled));
    return filled;
  }

  /// Deflate's largest ratio is 1032 : 1.
  std::uint64_t most_bytes() const override { return file_->most_bytes() * 1032; }

 private:
  std::size_t inflate_some(std::span<std::uint8_t> out) {
    if (inflater_.avail_in == 0 && !refill()) fail("ends in the middle of its compressed data");
    const std::size_t room = std::min<std::size_t>(out.size(), 1u << 30);
    inflater_.next_out = out.data();
    inflater_.avail_out = static_cast<uInt>(room);
    const int result = inflate(&inflater_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result != Z_OK && result != Z_STREAM_END)
      fail(std::string("is not a valid .gz file (") + (inflater_.msg ? inflater_.msg : "no reason given") + ")");
    if (result == Z_STREAM_END) next_member();  // zlib has verified checksum and length
    return room - inflater_.avail_out;
  }

  /// Returns false at the end of the file.
  bool refill() {
    inflater_.next_in = input_.data();
    inflater_.avail_in = static_cast<uInt>(file_->read(input_));
    return inflater_.avail_in > 0;
  }

  /// A file may have several members (pigz, bgzip, cat), and zeros after each: gzip(1) ignores them, since tapes are
  /// padded with them.
  void next_member() {
    while (inflater_.avail_in > 0 || refill()) {
      if (*inflater_.next_in != 0) {
        if (*inflater_.next_in != kFirstByte) fail("has bytes after the end of its compressed data");
        inflateReset(&inflater_);
        return;
      }
      ++inflater_.next_in;
      --inflater_.avail_in;
    }
    ended_ = true;
  }

  [[noreturn]] void fail(const std::string& found) const {
    throw DataError(path_, found, std::string("the download is corrupt: ") + kDownloadAgain);
  }

  fs::path path_;
  std::unique_ptr<ByteSource> file_;
  z_stream inflater_{};
  std::array<std::uint8_t, 64 * 1024> input_{};
  bool ended_ = false;
};

}  // namespace

void require_memory(const fs::path& path, std::string_view what, std::uint64_t bytes) {
  const std::string lack = lack_of_memory(bytes);
  if (!lack.empty())
    throw DataError(path, std::string(what) + " need " + lack,
                    "check where the file is from; if it is right, use a machine with more memory");
}

std::unique_ptr<ByteSource> open_plain(const fs::path& path) { return std::make_unique<PlainSource>(path); }

std::unique_ptr<ByteSource> open_gzip(const fs::path& path) { return std::make_unique<GzipSource>(path); }

std::unique_ptr<ByteSource> open_plain_or_gzip(const fs::path& path) {
  std::array<std::uint8_t, 2> start{};
  open_plain(path)->read(start);
  const bool is_gzip = start[0] == GzipSource::kFirstByte && start[1] == GzipSource::kSecondByte;
  return is_gzip ? open_gzip(path) : open_plain(path);
}

bool is_file(const fs::path& path) {
  std::error_code error;
  const bool found = fs::is_regular_file(path, error);
  throw_if_system_failed(path, "cannot be accessed", error);
  return found;
}

void check_missing(std::span<const fs::path> folders, std::span<const std::string> names) {
  const auto is_accessible = [](const fs::path& path, int mode) {
    return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0 || errno != EACCES;
  };
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder)
    if (!is_accessible(*folder, F_OK) || !is_accessible(*folder, R_OK | X_OK))
      throw std::system_error(
          EACCES, std::generic_category(),
          folder->string() + ": the folder cannot be read; change its permissions, or name another");
  for (const fs::path& folder : folders)
    for (const std::string& name : names) {
      const fs::path path = folder / name;
      std::error_code error;
      const fs::file_type kind = fs::symlink_status(path, error).type();
      if (kind == fs::file_type::none || kind == fs::file_type::not_found || is_file(path)) continue;
      throw DataError(path,
                      kind == fs::file_type::symlink ? "is a link, but not to a regular file" : "is not a regular file",
                      "put the file there, or name the folder that has it");
    }
}

}  // namespace gradring::data
