// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/fetch.h"

#include <system_error>

#include "data/error.h"
#include "data/fetch/download.h"
#include "data/fetch/unpack.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> mirrors_for(const CatalogueEntry& entry, const FetchSpec& spec) {
  if (!spec.mirrors.empty()) return spec.mirrors;
  return {entry.mirrors.begin(), entry.mirrors.end()};
}

bool is_good(const fs::path& folder, const KnownFile& file) {
  return check_file(folder / file.name, file).state == FileState::good;
}

/// Whether the unpacked form is there. It is read before the packed one: a wrong one would be in the way of what is fetched.
bool has_unpacked(const fs::path& folder, const KnownFile& unpacked) {
  if (unpacked.name.empty()) return false;
  const FileCheck found = check_file(folder / unpacked.name, unpacked);
  if (found.state == FileState::wrong)
    throw DataError(folder / unpacked.name, found.found, "delete the file, and fetch again");
  return found.state == FileState::good;
}

/// The files that are not there in either form.
std::vector<CatalogueFile> missing_files(const CatalogueEntry& entry, const fs::path& folder, FetchListener& listener) {
  std::vector<CatalogueFile> missing;
  for (const CatalogueFile& file : entry.files) {
    if (has_unpacked(folder, file.unpacked))
      listener.already_there(file.unpacked.name);
    else if (is_good(folder, file.file))
      listener.already_there(file.file.name);
    else
      missing.push_back(file);
  }
  return missing;
}

}  // namespace

void fetch(const CatalogueEntry& entry, const FetchSpec& spec, FetchListener& listener) {
  const fs::path folder = spec.data_dir / entry.name;
  const auto missing = missing_files(entry, folder, listener);
  if (missing.empty()) return;
  const auto mirrors = mirrors_for(entry, spec);
  const auto get = [&](const KnownFile& file) {
    require_http();
    download({.file = file, .folder = folder, .mirrors = mirrors, .timeouts = spec.timeouts}, listener);
  };
  if (entry.archive.name.empty()) {
    for (const CatalogueFile& file : missing) get(file.file);
    return;
  }
  const fs::path archive = folder / entry.archive.name;
  const bool was_there = is_good(folder, entry.archive);
  if (!was_there) get(entry.archive);
  unpack(archive, missing, folder, listener);
  std::error_code stays;  // then it takes room, and does no harm
  if (!was_there) fs::remove(archive, stays);
}

}  // namespace gradring::data
