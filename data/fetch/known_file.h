// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "data/files/sha256.h"

namespace gradring::data {

/// A file that is known to the last bit.
struct KnownFile {
  std::string_view name;
  std::uint64_t bytes = 0;
  std::string_view sha256;  ///< hexadecimal
};

enum class FileState : std::uint8_t { good, missing, wrong };

struct FileCheck {
  FileState state = FileState::good;
  std::string found;  ///< what is wrong: "has 12 bytes, not 9912422"
};

/// Compares a file with what it should be: its size, then its hash.
///
/// Errors    DataError if it is there and cannot be read.
/// Cost      reads it once where the size is right.
FileCheck check_file(const std::filesystem::path& path, const KnownFile& expected);

}  // namespace gradring::data
