// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/records/checkpoint/file_system.h"

namespace gradring::train {

/// The records of a zip archive: their signatures and the sizes of their fixed parts.
namespace zip {
constexpr std::string_view kLocalHeader = "PK\3\4";
constexpr std::string_view kDirectoryEntry = "PK\1\2";
constexpr std::string_view kEnd = "PK\5\6";
constexpr std::string_view kEnd64 = "PK\6\6";
constexpr std::string_view kEnd64Locator = "PK\6\7";
constexpr std::size_t kLocalHeaderBytes = 30;
constexpr std::size_t kDirectoryEntryBytes = 46;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::size_t kEnd64LocatorBytes = 20;
}  // namespace zip

/// A file in a zip archive.
struct ZipEntry {
  std::string name;
  std::uint64_t header = 0;  ///< offset of its local header
  std::uint64_t begin = 0;   ///< offset of its bytes
  std::uint64_t bytes = 0;   ///< as they are in the archive
  std::uint32_t crc32 = 0;
  bool compressed = false;
};

/// Reads a zip archive with stored (not compressed) entries, as torch.save writes them, with or without zip64. If the
/// CRC-32 of every entry is 0, the writer computed none (torch.serialization.set_crc32_options), and none is verified.
///
/// Errors    CheckpointError, naming the archive: not a zip archive, truncated, compressed or encrypted entries, a name
///           that occurs twice or differs between an entry and the directory, entries that overlap or reach beyond the
///           archive, a directory above 4 MiB, a wrong CRC-32.
/// Source    PKWARE's APPNOTE.TXT 6.3.
class ZipReader {
 public:
  ZipReader(const InputFile& file, std::filesystem::path path);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// Null if there is no entry of this name.
  const ZipEntry* find(std::string_view name) const;
  /// The bytes of an entry, after its CRC-32 was verified.
  std::vector<std::byte> read(const ZipEntry& entry) const;

 private:
  struct Directory {
    std::uint64_t begin = 0, bytes = 0, entries = 0;
  };
  Directory find_directory() const;
  Directory find_zip64_directory(std::uint64_t locator) const;
  ZipEntry parse_entry(std::string_view& rest) const;
  void find_bytes(ZipEntry& entry) const;
  void check_overlaps(std::uint64_t directory) const;

  const InputFile& file_;
  std::filesystem::path path_;
  std::vector<ZipEntry> entries_;
  bool has_checksums_ = false;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

/// Writes a zip archive with stored entries from front to end. Aligns the bytes of each entry to 64, as torch.save
/// does, so that tensors can be mapped into memory.
///
/// Errors    FileError; InvalidArgument beyond 4 GiB.
class ZipWriter {
 public:
  ZipWriter(OutputFile& file, std::filesystem::path path) : file_(file), path_(std::move(path)) {}

  void add(std::string_view name, std::span<const std::byte> bytes);
  /// Writes the directory, after the last entry.
  void finish();

 private:
  void write(std::string_view text);

  OutputFile& file_;
  std::filesystem::path path_;
  std::uint64_t offset_ = 0;
  std::uint32_t entries_ = 0;
  std::string directory_;
};

}  // namespace gradring::train
