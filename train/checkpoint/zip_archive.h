// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/checkpoint/file_system.h"

namespace gradring::train {

/// One file inside a zip archive, stored as it is.
struct ZipEntry {
  std::string name;
  std::uint64_t header = 0;  ///< where its local header begins
  std::uint64_t begin = 0;   ///< where its bytes begin in the archive
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;
};

/// The directory of a zip archive whose entries are stored, not compressed, as torch.save writes them; with or without
/// zip64.
///
/// Errors    CheckpointError, naming the archive: no zip, cut short, compressed or encrypted entries, a name that stands
///           twice or differs between an entry and the directory, entries that overlap or reach beyond the archive, a
///           directory above 4 MiB, a checksum that is wrong.
/// Source    PKWARE's APPNOTE.TXT 6.3.
class ZipReader {
 public:
  ZipReader(const InputFile& file, std::filesystem::path path);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// Null if there is none of this name.
  const ZipEntry* find(std::string_view name) const;
  /// The bytes of an entry; their checksum is verified.
  std::vector<std::byte> read(const ZipEntry& entry) const;

 private:
  struct Directory {
    std::uint64_t begin = 0, bytes = 0, entries = 0;
  };
  Directory find_directory() const;
  Directory find_zip64_directory(std::uint64_t locator) const;
  ZipEntry parse_entry(std::string_view& rest) const;
  void find_bytes(ZipEntry& entry) const;
  void check_apart(std::uint64_t directory) const;

  const InputFile& file_;
  std::filesystem::path path_;
  std::vector<ZipEntry> entries_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

/// Writes a zip archive from front to end: every entry stored, its bytes at a multiple of 64 as torch.save lays them, so
/// that tensors can be mapped into memory.
///
/// Errors    FileError; InvalidArgument beyond 4 GiB.
class ZipWriter {
 public:
  ZipWriter(OutputFile& file, std::filesystem::path path) : file_(file), path_(std::move(path)) {}

  void add(std::string_view name, std::span<const std::byte> bytes);
  /// Writes the directory; nothing can be added then.
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
