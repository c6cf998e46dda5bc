// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "data/fetch/catalogue.h"

namespace gradring::data {

/// What became of one file of a data set.
struct VerifiedFile {
  std::filesystem::path path;  ///< where it lies, or should
  FileCheck check;
};

/// Compares the files of a data set, as they are fetched or unpacked, with what they should be; each in the first of the
/// folders where open_dataset looks that has it.
///
/// Errors    DataError if one cannot be read.
/// Cost      reads and hashes all of them.
std::vector<VerifiedFile> verify(const CatalogueEntry& entry, const std::filesystem::path& data_dir);

}  // namespace gradring::data
