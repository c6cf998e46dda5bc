// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/fetch.h"

#include <algorithm>
#include <string_view>
#include <system_error>

#include "data/datasets/open_dataset.h"
#include "data/error.h"
#include "data/fetch/tar_reader.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

bool is_good(const fs::path& folder, const KnownFile& file) {
  return check_file(folder / file.name, file).state == FileState::good;
}

/// Throws if an unpacked file is invalid: readers prefer it to the packed one that would be downloaded.
bool has_unpacked(const fs::path& folder, const KnownFile& unpacked) {
  if (unpacked.name.empty()) return false;
  const FileCheck found = check_file(folder / unpacked.name, unpacked);
  if (found.state == FileState::wrong)
    throw DataError(folder / unpacked.name, found.found, "delete the file and fetch again");
  return found.state == FileState::good;
}

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

void unpack_one(TarReader& reader, const KnownFile& file, const fs::path& archive, const fs::path& folder) {
  PartFile part(folder / file.name);
  part.clear();
  std::vector<std::uint8_t> buffer(1 << 18);
  while (const std::size_t count = reader.read(buffer)) part.append(std::as_bytes(std::span(buffer).first(count)));
  const FileCheck found = part.check(file);
  if (found.state == FileState::good) return part.publish();
  part.remove();
  throw DataError(archive, std::string(file.name) + " in it " + found.found, kDownloadAgain);
}

void unpack(const fs::path& archive, std::span<const CatalogueFile> files, const fs::path& folder,
            FetchListener& listener) {
  std::vector<std::string_view> missing;
  for (const CatalogueFile& entry : files) missing.push_back(entry.file.name);
  TarReader reader(archive);
  while (const auto member = reader.next()) {
    const fs::path name = fs::path(member->name).filename();
    const auto entry = std::ranges::find_if(files, [&](const auto& candidate) { return candidate.file.name == name; });
    if (!member->is_file || entry == files.end()) continue;
    unpack_one(reader, entry->file, archive, folder);
    listener.done(entry->file.name);
    std::erase(missing, entry->file.name);
  }
  if (!missing.empty()) throw DataError(archive, "holds no " + std::string(missing.front()), kDownloadAgain);
}

/// The first existing form of a file, in the first folder that has one; unpacked first, as readers prefer it.
VerifiedFile verify_one(const CatalogueFile& file, const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders)
    for (const KnownFile& form : {file.unpacked, file.file}) {
      if (form.name.empty()) continue;
      const FileCheck check = check_file(folder / form.name, form);
      if (check.state != FileState::missing) return {.path = folder / form.name, .check = check};
    }
  const fs::path path = folders.front() / file.file.name;
  return {.path = path, .check = check_file(path, file.file)};
}

}  // namespace

void fetch(const CatalogueEntry& entry, const FetchSpec& spec, FetchListener& listener) {
  const fs::path folder = spec.data_dir / entry.name;
  const auto missing = missing_files(entry, folder, listener);
  if (missing.empty()) return;
  const std::vector<std::string> mirrors =
      spec.mirrors.empty() ? std::vector<std::string>(entry.mirrors.begin(), entry.mirrors.end()) : spec.mirrors;
  const auto get = [&](const KnownFile& file) {
    require_http();
    download({.file = file, .folder = folder, .mirrors = mirrors, .timeouts = spec.timeouts}, listener);
  };
  if (entry.archive.name.empty()) {
    for (const CatalogueFile& file : missing) get(file.file);
    return;
  }
  const fs::path archive = folder / entry.archive.name;
  const bool existed = is_good(folder, entry.archive);
  if (!existed) get(entry.archive);
  unpack(archive, missing, folder, listener);
  std::error_code ignored;  // a leftover archive only takes space
  if (!existed) fs::remove(archive, ignored);
}

std::vector<VerifiedFile> verify(const CatalogueEntry& entry, const fs::path& data_dir) {
  const auto folders = dataset_folders(entry.name, data_dir);
  std::vector<VerifiedFile> files;
  for (const CatalogueFile& file : entry.files) files.push_back(verify_one(file, folders));
  return files;
}

}  // namespace gradring::data
