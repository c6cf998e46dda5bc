// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/step_folders.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>
#include <utility>

#include "train/records/checkpoint/checkpoint.h"
#include "train/records/checkpoint/error.h"

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

}  // namespace gradring::train
