// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/error.h"
#include "kernels/base/printable.h"

namespace gradring::data {

/// Advice for a corrupt download.
inline constexpr const char* kDownloadAgain = "delete the file and download it again";

/// A dataset file is missing, corrupt or not of the expected format. The message is "path: what was found; what to do".
class DataError : public Error, public ExitsWith<kBadData> {
 public:
  DataError(std::filesystem::path path, std::string_view found, std::string_view advice)
      : Error(printable(path.string()) + ": " + std::string(found) + "; " + std::string(advice)),
        path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// To be called before memory is allocated for what a file promises.
///
/// Errors    DataError if less than `bytes` is available: "path: 3 x 28 x 28 values need 20480 MiB of memory, ...".
///           `what` needs them.
void require_memory(const std::filesystem::path& path, std::string_view what, std::uint64_t bytes);

/// Sequential reader of a file, decompressed if the file is compressed.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills `out` from the front and returns the number of bytes read, fewer than asked for only at the end.
  ///
  /// Errors    DataError if the file is truncated or does not decompress; std::system_error if a read fails.
  virtual std::size_t read(std::span<std::uint8_t> out) = 0;
  /// Upper bound of the bytes in the whole file, to check before memory is allocated for them.
  virtual std::uint64_t most_bytes() const = 0;
};

/// Reads the file's bytes as they are.
///
/// Errors    DataError if it is not a readable file; std::system_error if the system cannot open it.
std::unique_ptr<ByteSource> open_plain(const std::filesystem::path& path);

/// Reads a .gz file of one or more members, each with any header fields. Verifies the checksum of each. Zeros may follow
/// a member; other bytes are rejected.
///
/// Source    RFC 1952 (gzip), RFC 1951 (deflate), by zlib.
std::unique_ptr<ByteSource> open_gzip(const std::filesystem::path& path);

/// Chooses between the two by the file's first two bytes.
std::unique_ptr<ByteSource> open_plain_or_gzip(const std::filesystem::path& path);

/// Whether `path` is a regular file.
///
/// Errors    std::system_error if it cannot be accessed for a reason of the system's (I/O error, too many open files,
///           ...).
bool is_file(const std::filesystem::path& path);

/// Throws unless files of these names are just missing from the folders: if a folder exists but may not be read (begins
/// with the last one), or a path exists and is not a regular file, such as a link to nothing.
///
/// Errors    DataError; std::system_error as is_file, and for a folder.
void check_missing(std::span<const std::filesystem::path> folders, std::span<const std::string> names);

}  // namespace gradring::data
