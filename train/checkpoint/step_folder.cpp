// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/step_folder.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>

namespace gradring::train {
namespace {

struct Spelling {
  FolderState state;
  std::string_view before_step, behind_step;
};

constexpr Spelling kSpellings[] = {{FolderState::in_place, "step-", ""},
                                   {FolderState::partial, "step-", ".partial"},
                                   {FolderState::removing, "step-", ".removing"},
                                   {FolderState::replaced, "step-", ".replaced"},
                                   {FolderState::abandoned, "abandoned-step-", ""}};

}  // namespace

std::string step_folder_name(std::int64_t step, FolderState state) {
  const auto spelling = std::ranges::find(kSpellings, state, &Spelling::state);
  return std::string(spelling->before_step) + std::to_string(step) + std::string(spelling->behind_step);
}

/// Takes a name only if it is spelled as step_folder_name spells it: no 007.
std::optional<StepFolder> step_folder_at(const std::filesystem::path& path) {
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
  for (const Spelling& spelling : kSpellings) {
    if (!name.starts_with(spelling.before_step)) continue;
    StepFolder folder{.step = -1, .state = spelling.state, .path = path};
    std::from_chars(name.data() + spelling.before_step.size(), name.data() + name.size(), folder.step);
    if (folder.step >= 0 && step_folder_name(folder.step, folder.state) == name) return folder;
  }
  return std::nullopt;
}

std::vector<StepFolder> list_step_folders(FileSystem& files, const std::filesystem::path& root) {
  std::vector<StepFolder> found;
  if (!files.exists(root)) return found;
  for (const std::string& name : files.list(root))
    if (auto folder = step_folder_at(root / name)) found.push_back(std::move(*folder));
  std::ranges::sort(found, [](const StepFolder& a, const StepFolder& b) {
    return std::tie(b.step, a.state) < std::tie(a.step, b.state);
  });
  return found;
}

}  // namespace gradring::train
