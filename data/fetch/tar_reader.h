// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/files/byte_source.h"

namespace gradring::data {

/// Reads the members of a tar archive, plain or .gz, in order. Names are untrusted: they are compared, never opened.
///
/// Errors    DataError if the archive cannot be read, is corrupt or truncated, or has members of 8 GiB or more.
/// Source    POSIX.1-1988, ustar.
class TarReader {
 public:
  struct Member {
    std::string name;  ///< with folders: "cifar-10-batches-bin/test_batch.bin"
    std::uint64_t bytes = 0;
    bool is_file = false;  ///< a regular file: not a folder, link or extended header
  };

  explicit TarReader(const std::filesystem::path& path);

  /// Skips the rest of the current member; nullopt at the end of the archive.
  std::optional<Member> next();
  /// Reads bytes of the current member, fewer than asked for only at its end.
  std::size_t read(std::span<std::uint8_t> out);

 private:
  static constexpr std::size_t kBlock = 512;
  using Block = std::array<std::uint8_t, kBlock>;

  void read_all(std::span<std::uint8_t> out);
  void skip(std::uint64_t bytes);
  void check_sum(const Block& header) const;
  std::uint64_t octal(std::span<const std::uint8_t> digits) const;

  std::filesystem::path path_;
  std::unique_ptr<ByteSource> source_;
  std::uint64_t left_ = 0;     // of the current member
  std::uint64_t padding_ = 0;  // after it
};

}  // namespace gradring::data
