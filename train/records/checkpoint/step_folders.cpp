// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/step_folders.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <tuple>
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

struct Spelling {
  FolderState state;
  std::string_view prefix, suffix;
};

constexpr Spelling kSpellings[] = {{FolderState::in_place, "step-", ""},
                                   {FolderState::partial, "step-", ".partial"},
                                   {FolderState::removing, "step-", ".removing"},
                                   {FolderState::replaced, "step-", ".replaced"},
                                   {FolderState::abandoned, "abandoned-step-", ""}};

}  // namespace

bool is_finished(FolderState state) { return state != FolderState::partial && state != FolderState::removing; }

std::string step_folder_name(std::int64_t step, FolderState state, int number) {
  const auto spelling = std::ranges::find(kSpellings, state, &Spelling::state);
  const std::string name = std::string(spelling->prefix) + std::to_string(step) + std::string(spelling->suffix);
  return number == 1 ? name : name + "-" + std::to_string(number);
}

std::optional<StepFolder> step_folder_at(const fs::path& path) {
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
  for (const Spelling& spelling : kSpellings) {
    if (!name.starts_with(spelling.prefix)) continue;
    StepFolder folder{.step = -1, .state = spelling.state, .path = path};
    const char* const end = name.data() + name.size();
    const char* const rest = std::from_chars(name.data() + spelling.prefix.size(), end, folder.step).ptr;
    if (folder.state == FolderState::abandoned && rest != end) std::from_chars(rest + 1, end, folder.number);
    if (folder.step >= 0 && folder.number >= 1 && step_folder_name(folder.step, folder.state, folder.number) == name)
      return folder;
  }
  return std::nullopt;
}

std::vector<StepFolder> list_step_folders(FileSystem& files, const fs::path& root) {
  std::vector<StepFolder> found;
  if (!files.exists(root)) return found;
  for (const std::string& name : files.list(root))
    if (auto folder = step_folder_at(root / name)) found.push_back(std::move(*folder));
  for (const char* link : {kLatestLink, kBestLink})
    if (auto copy = copied_link(files, root, link); copy && std::ranges::none_of(found, [&](const StepFolder& folder) {
                                                      return folder.step == copy->step && is_finished(folder.state);
                                                    }))
      found.push_back(std::move(*copy));
  std::ranges::sort(found, [](const StepFolder& a, const StepFolder& b) {
    return std::tie(b.step, a.state, a.number) < std::tie(a.step, b.state, b.number);
  });
  return found;
}

std::optional<StepFolder> copied_link(FileSystem& files, const fs::path& root, const char* link) try {
  const fs::path path = root / link;
  if (!files.exists(path) || target_of(files, path)) return std::nullopt;
  return StepFolder{.step = read_meta(files, path).step, .path = path};
} catch (const Error&) {
  return std::nullopt;
}

std::optional<fs::path> target_of(FileSystem& files, const fs::path& link) {
  try {
    return files.read_link(link);
  } catch (const FileError&) {
    return std::nullopt;
  }
}

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
