// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/unpack.h"

#include <algorithm>
#include <string>
#include <vector>

#include "data/error.h"
#include "data/fetch/part_file.h"
#include "data/fetch/tar_reader.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

void unpack_one(TarReader& reader, const KnownFile& file, const fs::path& archive, const fs::path& folder) {
  PartFile part(folder / file.name);
  part.clear();
  std::vector<std::uint8_t> piece(1 << 18);
  while (const std::size_t count = reader.read(piece)) part.append(std::as_bytes(std::span(piece).first(count)));
  const FileCheck found = part.check(file);
  if (found.state == FileState::good) return part.publish();
  part.remove();
  throw DataError(archive, std::string(file.name) + " in it " + found.found, "delete the file and get it again");
}

}  // namespace

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
  if (!missing.empty())
    throw DataError(archive, "holds no " + std::string(missing.front()), "delete the file and get it again");
}

}  // namespace gradring::data
