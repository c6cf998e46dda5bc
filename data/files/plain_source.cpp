// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <fstream>
#include <system_error>

#include "data/error.h"
#include "data/files/byte_source.h"

namespace gradring::data {
namespace {

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(const std::filesystem::path& path) : path_(path) {
    std::error_code error;
    bytes_ = std::filesystem::file_size(path, error);  // fails for folders and the like, too
    if (!error) file_.open(path, std::ios::binary);
    if (error || !file_)
      throw DataError(path, "cannot be opened" + (error ? " (" + error.message() + ")" : ""),
                      "check that it is a file and that you may read it");
  }

  std::size_t read(std::span<std::uint8_t> out) override {
    file_.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    if (file_.bad()) throw DataError(path_, "cannot be read", "check the disk it lies on");
    return static_cast<std::size_t>(file_.gcount());
  }

  std::uint64_t most_bytes() const override { return bytes_; }

 private:
  std::filesystem::path path_;
  std::ifstream file_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> open_plain(const std::filesystem::path& path) {
  return std::make_unique<PlainSource>(path);
}

std::unique_ptr<ByteSource> open_plain_or_gzip(const std::filesystem::path& path) {
  std::array<std::uint8_t, 2> start{};
  open_plain(path)->read(start);
  const bool is_gzip = start[0] == 0x1f && start[1] == 0x8b;
  return is_gzip ? open_gzip(path) : open_plain(path);
}

}  // namespace gradring::data
