// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace gradring::data {

/// A file's bytes from its beginning, decompressed where it is compressed.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills `out` from the front; fewer bytes than asked for come only at the end.
  ///
  /// Errors    DataError if the file cannot be read, is cut short, or does not decompress.
  virtual std::size_t read(std::span<std::uint8_t> out) = 0;
  /// More bytes than this cannot follow from the beginning on: to be asked before memory is allocated for them.
  virtual std::uint64_t most_bytes() const = 0;
};

/// The bytes as they lie in the file.
///
/// Errors    DataError if it cannot be opened.
std::unique_ptr<ByteSource> open_plain(const std::filesystem::path& path);

/// The bytes of a .gz file. At its end the checksum is verified, and anything that follows is refused.
///
/// Source    RFC 1952 (gzip), RFC 1951 (deflate), by zlib.
std::unique_ptr<ByteSource> open_gzip(const std::filesystem::path& path);

/// One of the two, by the file's first two bytes, whatever its name is.
std::unique_ptr<ByteSource> open_plain_or_gzip(const std::filesystem::path& path);

}  // namespace gradring::data
