// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/verify.h"

#include "data/datasets/open_dataset.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

/// The first form of a file that is there, in the first folder that has one; unpacked first, as open_dataset prefers it.
VerifiedFile verify_one(const CatalogueFile& file, const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders)
    for (const KnownFile& form : {file.unpacked, file.file}) {
      if (form.name.empty()) continue;
      const FileCheck check = check_file(folder / form.name, form);
      if (check.state != FileState::missing) return {.path = folder / form.name, .check = check};
    }
  return {.path = folders.front() / file.file.name, .check = {.state = FileState::missing, .found = "is not there"}};
}

}  // namespace

std::vector<VerifiedFile> verify(const CatalogueEntry& entry, const fs::path& data_dir) {
  const auto folders = dataset_folders(entry.name, data_dir);
  std::vector<VerifiedFile> files;
  for (const CatalogueFile& file : entry.files) files.push_back(verify_one(file, folders));
  return files;
}

}  // namespace gradring::data
