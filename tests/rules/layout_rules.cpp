// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "tests/rules/rules.h"

namespace gradring::rules {
namespace {

using Names = std::set<std::string>;

/// The direct folders of each package.
const std::map<std::string_view, Names>& direct_folders() {
  static const std::map<std::string_view, Names> table = {
      {"kernels", {"base", "bench", "host", "lib", "ops", "runtime", "simt", "simulated_gpu"}},
      {"nn", {"backend", "layers", "models", "program"}},
      {"comm", {"bench", "collectives", "rendezvous", "sockets", "transport", "transports"}},
      {"data", {"augment", "bench", "datasets", "fetch", "files", "images", "loader"}},
      {"train", {"app", "bench", "core", "launch", "options", "records", "view"}},
  };
  return table;
}

/// What every package uses and no device needs. Whatever fewer than two packages need is theirs.
const Names& base_files() {
  static const Names names = {"available_memory", "child_process", "commit",      "control_groups", "deadline",
                              "descriptor_limit", "directory",     "error",       "file",           "host_name",
                              "in_quotes",        "nearest_name",  "number_list", "printable",      "process_limit",
                              "processors",       "shared_library"};
  return names;
}

}  // namespace

Violations settled_folders(const SourceTree& tree) {
  static const Names roots = {"comm", "data", "docs", "kernels", "nn", "scripts", "tests", "train"};
  Violations found;
  for (const std::string& folder : tree.top_level_folders)
    if (!roots.contains(folder)) found.push_back({folder, 0, "a folder of the root that docs/architecture.md lacks"});
  Names reported;
  for (const SourceFile& file : tree.files) {
    if (!is_production(file)) continue;
    const std::string folder = direct_folder_of(file.path);
    const auto package = direct_folders().find(file.package());
    const std::string name = folder.substr(folder.find('/') + 1);
    if (folder != file.package() && !package->second.contains(name) && reported.insert(folder).second)
      found.push_back({folder, 0, "a folder that docs/architecture.md lacks"});
    if (folder == "kernels/base" && !base_files().contains(std::filesystem::path(file.path).stem().string()))
      found.push_back({file.path, 0, "not one of the files of kernels/base"});
  }
  return found;
}

Violations file_lengths(const SourceTree& tree) {
  constexpr std::size_t limit = 400;
  Violations found;
  for (const SourceFile& file : tree.files)
    if (file.is_cpp() && file.text.size() > limit)
      found.push_back({file.path, 0, std::to_string(file.text.size()) + " lines: look for the second concept"});
  return found;
}

}  // namespace gradring::rules
