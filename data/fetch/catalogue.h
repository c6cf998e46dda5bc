// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "data/files/sha256.h"

namespace gradring::data {

/// A file with known content.
struct KnownFile {
  std::string_view name;
  std::uint64_t bytes = 0;
  std::string_view sha256;  ///< hexadecimal; empty: unknown, where the archive that holds the file has one
};

enum class FileState : std::uint8_t { good, missing, wrong };

struct FileCheck {
  FileState state = FileState::good;
  std::string found;  ///< if not good: "has 12 bytes, expected 9912422"
};

/// Checks the size and, if it is known, the hash of a file.
///
/// Errors    DataError if it exists and cannot be read.
/// Cost      reads it once if the size is right.
FileCheck check_file(const std::filesystem::path& path, const KnownFile& expected);

/// A file of a dataset, packed and unpacked.
struct CatalogueFile {
  KnownFile file;           ///< as downloaded, or as in the archive
  KnownFile unpacked = {};  ///< without .gz; no name if it is not packed
};

/// A public dataset and where to download it.
struct CatalogueEntry {
  std::string_view name;  ///< as in dataset_names(); also the folder for its files
  std::string_view title;
  std::string_view authors;  ///< and the licence if one is stated
  std::span<const CatalogueFile> files;
  KnownFile archive = {};  ///< a .tar.gz with the files; no name if they are downloaded one by one
  std::span<const std::string_view> mirrors;
};

/// Every dataset that can be downloaded.
std::span<const CatalogueEntry> catalogue();

/// Errors    InvalidArgument for a name that is not in the catalogue; suggests the nearest.
const CatalogueEntry& find_entry(std::string_view name);

}  // namespace gradring::data
