// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/step_folder.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

struct Spelling {
  FolderState state;
  std::string_view prefix, suffix;
};

constexpr Spelling kSpellings[] = {{FolderState::in_place, "step-", ""},
                                   {FolderState::partial, "step-", ".partial"},
                                   {FolderState::removing, "step-", ".removing"},
                                   {FolderState::replaced, "step-", ".replaced"},
                                   {FolderState::abandoned, "abandoned-step-", ""}};

/// The size of the files in a folder; those that cannot be opened count 0.
std::uint64_t bytes_in(FileSystem& files, const fs::path& folder) {
  std::uint64_t bytes = 0;
  const auto ignoring_errors = [](const auto& act) {
    try {
      act();
    } catch (const FileError&) {
    }
  };
  ignoring_errors([&] {
    for (const std::string& name : files.list(folder))
      ignoring_errors([&] { bytes += files.open(folder / name)->size(); });
  });
  return bytes;
}

void read_meta_of(ListedCheckpoint& listed, FileSystem& files) {
  try {
    listed.score = read_meta(files, listed.folder.path).score;
    listed.meta = MetaState::valid;
  } catch (const NewerFormatError&) {
    listed.meta = MetaState::newer_format;
  } catch (const CheckpointError&) {  // `ckpt verify` prints the reason
    listed.meta = MetaState::damaged;
  } catch (const FileError&) {
    listed.meta = MetaState::unreadable;
  }
}

}  // namespace

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
  std::ranges::sort(found, [](const StepFolder& a, const StepFolder& b) {
    return std::tie(b.step, a.state, a.number) < std::tie(a.step, b.state, b.number);
  });
  return found;
}

std::optional<fs::path> target_of(FileSystem& files, const fs::path& link) {
  try {
    return files.read_link(link);
  } catch (const FileError&) {
    return std::nullopt;
  }
}

std::vector<ListedCheckpoint> list_checkpoints(FileSystem& files, const fs::path& root) {
  std::vector<ListedCheckpoint> all;
  for (StepFolder& folder : list_step_folders(files, root)) {
    ListedCheckpoint listed{.folder = std::move(folder), .score = std::nullopt};
    const fs::path& path = listed.folder.path;
    listed.bytes = bytes_in(files, path);
    read_meta_of(listed, files);
    listed.is_latest = target_of(files, root / kLatestLink) == path.filename();
    listed.is_best = target_of(files, root / kBestLink) == path.filename();
    if (listed.meta == MetaState::valid || files.exists(path)) all.push_back(std::move(listed));
  }
  return all;
}

}  // namespace gradring::train
