// SPDX-License-Identifier: Apache-2.0
#include "tests/rules/rules.h"

namespace gradring::rules {

Violations top_level_folders(const SourceTree& tree) {
  static const std::set<std::string> settled = {"comm", "data", "docs", "kernels", "nn", "scripts", "tests", "train"};
  Violations found;
  for (const std::string& folder : tree.top_level_folders)
    if (!settled.contains(folder)) found.push_back({folder, 0, "a folder of the root that docs/architecture.md lacks"});
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
