// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/listing.h"

#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/error.h"
#include "train/checkpoint/meta_file.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

std::uint64_t size_of(FileSystem& files, const fs::path& file) {
  try {
    return files.open(file)->size();
  } catch (const FileError&) {
    return 0;
  }
}

std::uint64_t bytes_in(FileSystem& files, const fs::path& folder) {
  std::uint64_t bytes = 0;
  try {
    for (const std::string& name : files.list(folder)) bytes += size_of(files, folder / name);
  } catch (const FileError&) {  // no folder, or one that may not be listed
  }
  return bytes;
}

void look_at_meta(FileSystem& files, ListedCheckpoint& listed) {
  try {
    listed.score = read_meta(files, listed.folder.path).score;
    listed.meta = MetaState::valid;
  } catch (const CheckpointError&) {  // verify_checkpoint says why
    listed.meta = MetaState::damaged;
  } catch (const FileError&) {
    listed.meta = MetaState::unreadable;
  }
}

}  // namespace

std::vector<ListedCheckpoint> list_checkpoints(FileSystem& files, const fs::path& root) {
  std::vector<ListedCheckpoint> all;
  for (StepFolder& folder : list_step_folders(files, root)) {
    ListedCheckpoint listed{.folder = std::move(folder), .score = std::nullopt};
    const fs::path& path = listed.folder.path;
    listed.bytes = bytes_in(files, path);
    look_at_meta(files, listed);
    listed.is_latest = target_of(files, root / kLatestLink) == path.filename();
    listed.is_best = target_of(files, root / kBestLink) == path.filename();
    if (listed.meta == MetaState::valid || files.exists(path)) all.push_back(std::move(listed));
  }
  return all;
}

}  // namespace gradring::train
