// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/fetch/catalogue.h"
#include "data/fetch/download.h"

namespace gradring::data {

struct FetchSpec {
  std::filesystem::path data_dir;         ///< files go to data_dir/<dataset name>
  std::vector<std::string> mirrors = {};  ///< used instead of the public ones, if any
  HttpTimeouts timeouts = {};
};

/// Downloads the files of a dataset that are missing or invalid. An archive is unpacked, then removed unless it existed before.
/// Only known names are unpacked, from any folder of the archive; each file is hashed before it gets its name.
///
/// Errors    as require_http and download; DataError if the archive is corrupt, lacks a file or has another version of it.
/// Cost      hashes the files that exist already.
void fetch(const CatalogueEntry& entry, const FetchSpec& spec, FetchListener& listener);

struct VerifiedFile {
  std::filesystem::path path;  ///< where it is, or should be
  FileCheck check;
};

/// Checks the files of a dataset, packed or unpacked, each in the first folder of dataset_folders() that has it.
///
/// Errors    DataError if one cannot be read.
/// Cost      reads and hashes all of them.
std::vector<VerifiedFile> verify(const CatalogueEntry& entry, const std::filesystem::path& data_dir);

}  // namespace gradring::data
