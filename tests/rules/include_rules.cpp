// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <string>

#include "tests/rules/rules.h"

namespace gradring::rules {
namespace {

struct Include {
  std::string target;
  bool quoted = false;
  int line = 0;
};

std::vector<Include> includes_of(const SourceFile& file) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::vector<Include> found;
  for (std::size_t i = 0; i < file.code.size(); ++i) {
    std::smatch match;
    if (std::regex_search(file.code[i], match, pattern))
      found.push_back({.target = match[2], .quoted = match[1] == "\"", .line = static_cast<int>(i) + 1});
  }
  return found;
}

/// Calls `visit` for each include of each C++ file.
void each_include(const SourceTree& tree, const std::function<void(const SourceFile&, const Include&)>& visit) {
  for (const SourceFile& file : tree.files)
    for (const Include& include : includes_of(file)) visit(file, include);
}

/// The packages, and those besides itself that each may include.
const std::map<std::string, std::set<std::string>, std::less<>>& directions() {
  static const std::map<std::string, std::set<std::string>, std::less<>> table = {
      {"kernels", {}},
      {"nn", {"kernels"}},
      {"comm", {"kernels"}},
      {"data", {"kernels"}},
      {"train", {"kernels", "nn", "comm", "data"}},
      {"tests", {"kernels", "nn", "comm", "data", "train"}},
  };
  return table;
}

/// Headers that match `pattern` may be included in `places`, folders or files, and in device sources where `device_code`
/// says so.
struct Door {
  std::regex pattern;
  std::vector<std::string> places;
  bool device_code = false;
};

const std::vector<Door>& doors() {
  static const std::vector<Door> table = {
      {std::regex("^(cudnn|cublas).*"), {"nn/backend/cuda"}},
      {std::regex("^(oneapi/dnnl/|dnnl).*"), {"nn/backend/cpu"}},
      {std::regex("^nccl.*"), {"comm/transport/nccl"}},
      {std::regex("^curl/.*"), {"data/fetch"}},
      {std::regex("^(libpng.*/)?png(conf)?\\.h$"), {"data/images"}},
      {std::regex("^(cuda|cooperative_groups|curand|device_|driver_types|mma\\.h|nvtx|cub/|thrust/|vector_types).*"),
       {"kernels/runtime/cuda", "kernels/simt/cuda", "kernels/simt/on_cuda.h"},
       true},
  };
  return table;
}

bool may_pass(const SourceFile& file, const Door& door) {
  if (door.device_code && file.has_extension({".cu", ".cuh"})) return true;
  return std::ranges::any_of(door.places,
                             [&](const std::string& place) { return file.path == place || file.in(place); });
}

}  // namespace

Violations include_directions(const SourceTree& tree) {
  Violations found;
  each_include(tree, [&](const SourceFile& file, const Include& include) {
    const std::string from(file.package());
    const std::string to = include.target.substr(0, include.target.find('/'));
    const auto row = directions().find(from);
    if (row == directions().end() || !directions().contains(to) || to == from || row->second.contains(to)) return;
    found.push_back({file.path, include.line, from + " may not include " + to + " (" + include.target + ")"});
  });
  return found;
}

Violations include_paths(const SourceTree& tree) {
  Violations found;
  each_include(tree, [&](const SourceFile& file, const Include& include) {
    if (include.quoted && !tree.paths.contains(include.target))
      found.push_back({file.path, include.line, "no such file from the root: " + include.target});
    if (!include.quoted && tree.paths.contains(include.target))
      found.push_back({file.path, include.line, "a file of ours in angle brackets: " + include.target});
  });
  return found;
}

Violations vendor_doors(const SourceTree& tree) {
  Violations found;
  each_include(tree, [&](const SourceFile& file, const Include& include) {
    for (const Door& door : doors())
      if (!include.target.starts_with(std::string(file.package()) + "/") && !tree.paths.contains(include.target) &&
          std::regex_match(include.target, door.pattern) && !may_pass(file, door))
        found.push_back({file.path, include.line, include.target + " belongs behind " + door.places.front()});
  });
  return found;
}

}  // namespace gradring::rules
