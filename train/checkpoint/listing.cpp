// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/listing.h"

#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/error.h"
#include "train/checkpoint/meta_file.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// Whether a link names a folder.
bool names(FileSystem& files, const fs::path& link, const fs::path& folder) {
  return files.exists(link) && files.read_link(link) == folder.filename();
}

std::uint64_t bytes_in(FileSystem& files, const fs::path& folder) {
  std::uint64_t bytes = 0;
  for (const std::string& name : files.list(folder)) bytes += files.open(folder / name)->size();
  return bytes;
}

}  // namespace

std::vector<ListedCheckpoint> list_checkpoints(FileSystem& files, const fs::path& root) {
  std::vector<ListedCheckpoint> all;
  for (StepFolder& folder : list_step_folders(files, root)) {
    ListedCheckpoint listed{.folder = std::move(folder), .score = std::nullopt};
    listed.bytes = bytes_in(files, listed.folder.path);
    try {
      listed.score = read_meta(files, listed.folder.path / kMetaFile).score;
      listed.readable = true;
    } catch (const CheckpointError&) {  // verify_checkpoint says why
    }
    listed.is_latest = names(files, root / kLatestLink, listed.folder.path);
    listed.is_best = names(files, root / kBestLink, listed.folder.path);
    all.push_back(std::move(listed));
  }
  return all;
}

}  // namespace gradring::train
