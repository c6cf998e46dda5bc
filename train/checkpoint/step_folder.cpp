// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/step_folder.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <tuple>

namespace gradring::train {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::pair<FolderState, std::string_view> kSuffixes[] = {{FolderState::in_place, ""},
                                                                  {FolderState::partial, ".partial"},
                                                                  {FolderState::removing, ".removing"},
                                                                  {FolderState::replaced, ".replaced"}};

/// Takes a name only if it is spelled as step_folder_name spells it: no 007.
std::optional<StepFolder> parse(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  StepFolder folder{.step = -1, .path = {}};
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), folder.step);
  for (const auto& [state, suffix] : kSuffixes)
    if (folder.step >= 0 && step_folder_name(folder.step, state) == name) {
      folder.state = state;
      return folder;
    }
  return std::nullopt;
}

}  // namespace

std::string step_folder_name(std::int64_t step, FolderState state) {
  const auto suffix = std::ranges::find(kSuffixes, state, [](const auto& pair) { return pair.first; });
  return std::string(kPrefix) + std::to_string(step) + std::string(suffix->second);
}

std::vector<StepFolder> list_step_folders(FileSystem& files, const std::filesystem::path& root) {
  std::vector<StepFolder> found;
  if (!files.exists(root)) return found;
  for (const std::string& name : files.list(root))
    if (auto folder = parse(name)) {
      folder->path = root / name;
      found.push_back(std::move(*folder));
    }
  std::ranges::sort(found, [](const StepFolder& a, const StepFolder& b) {
    return std::tie(b.step, a.state) < std::tie(a.step, b.state);
  });
  return found;
}

}  // namespace gradring::train
