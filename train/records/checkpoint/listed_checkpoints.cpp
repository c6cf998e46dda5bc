// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/listed_checkpoints.h"

#include <string>
#include <utility>

#include "train/records/checkpoint/checkpoint.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

std::uint64_t size_of(FileSystem& files, const fs::path& path) try {
  return files.open(path)->size();
} catch (const FileError&) {
  return 0;
}

/// The size of the files in a folder; those that cannot be opened count 0.
std::uint64_t bytes_in(FileSystem& files, const fs::path& folder) try {
  std::uint64_t bytes = 0;
  for (const std::string& name : files.list(folder)) bytes += size_of(files, folder / name);
  return bytes;
} catch (const FileError&) {
  return 0;
}

/// Marks the newest and the best checkpoint of a list with the highest step first.
void mark(std::vector<ListedCheckpoint>& all) {
  ListedCheckpoint* latest = nullptr;
  ListedCheckpoint* best = nullptr;
  for (ListedCheckpoint& each : all) {
    if (each.folder.state != FolderState::in_place || each.meta != MetaState::valid) continue;
    if (!latest) latest = &each;
    if (each.score && (!best || *each.score > *best->score)) best = &each;
  }
  if (latest) latest->is_latest = true;
  if (best) best->is_best = true;
}

}  // namespace

MetaState read_score(FileSystem& files, const fs::path& folder, std::optional<double>& score) {
  try {
    score = read_meta(files, folder).score;
    return MetaState::valid;
  } catch (const NewerFormatError&) {
    return MetaState::newer_format;
  } catch (const CheckpointError&) {
    return MetaState::damaged;
  } catch (const FileError&) {
    return MetaState::unreadable;
  }
}

std::vector<ListedCheckpoint> list_checkpoints(FileSystem& files, const fs::path& root) {
  std::vector<ListedCheckpoint> all;
  for (StepFolder& folder : list_step_folders(files, root)) {
    ListedCheckpoint listed{.folder = std::move(folder), .score = std::nullopt};
    const fs::path& path = listed.folder.path;
    listed.bytes = bytes_in(files, path);
    listed.meta = read_score(files, path, listed.score);
    if (listed.meta == MetaState::valid || files.exists(path)) all.push_back(std::move(listed));
  }
  mark(all);
  return all;
}

}  // namespace gradring::train
