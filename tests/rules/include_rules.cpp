// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tests/rules/pattern.h"
#include "tests/rules/rules.h"

namespace gradring::rules {
namespace {

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
  Pattern pattern;
  std::vector<std::string> places;
  bool device_code = false;
};

const std::vector<Door>& doors() {
  static const std::vector<Door> table = {
      {Pattern("^(cudnn|cublas)"), {"nn/backend/cuda"}},
      {Pattern("^(oneapi/dnnl/|dnnl)"), {"nn/backend/cpu"}},
      {Pattern("^nccl"), {"comm/transports/nccl"}},
      {Pattern("^CLI/"), {"train/options/command_line.cpp"}},
      {Pattern("^(libpng.*/)?png(conf)?\\.h$"), {"data/images"}},
      {Pattern("^j(peglib|error|config|morecfg)\\.h$"), {"data/images"}},
      {Pattern("^zstd"), {"kernels/simulated_gpu/ptx"}},
      {Pattern("^cupti"), {"kernels/runtime/cuda"}},
      {Pattern("^nvtx"), {"kernels/runtime/cuda", "tests/support/nvtx_recorder"}},
      {Pattern("^(cuda|cooperative_groups|curand|device_|driver_types|mma\\.h|cub/|thrust/|vector_types)"),
       {"kernels/runtime/cuda", "kernels/simt/cuda", "kernels/simt/on_cuda.h", "kernels/simulated_gpu/cudart",
        "tests/kernels/simulated_gpu/cudart"},
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

std::map<std::string, std::set<std::string>> other_includers(const SourceTree& tree) {
  const auto stem = [](const std::string& path) { return path.substr(0, path.rfind('.')); };
  std::map<std::string, std::set<std::string>> includers;
  each_include(tree, [&](const SourceFile& file, const Include& include) {
    if (is_production(file) && tree.paths.contains(include.target) && stem(include.target) != stem(file.path))
      includers[include.target].insert(file.path);
  });
  return includers;
}

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

Violations short_headers(const SourceTree& tree) {
  Violations found;
  for (const auto& [header, includers] : other_includers(tree)) {
    if (includers.size() != 1 || header.starts_with("nn/layers/")) continue;  // each layer has a file
    const auto file = std::ranges::find(tree.files, header, &SourceFile::path);
    if (file != tree.files.end() && file->text.size() < 40)
      found.push_back({header, 0, "is short, and only " + *includers.begin() + " includes it: move it there"});
  }
  return found;
}

Violations vendor_doors(const SourceTree& tree) {
  Violations found;
  each_include(tree, [&](const SourceFile& file, const Include& include) {
    for (const Door& door : doors())
      if (!include.target.starts_with(std::string(file.package()) + "/") && !tree.paths.contains(include.target) &&
          door.pattern.found_in(include.target) && !may_pass(file, door))
        found.push_back({file.path, include.line, include.target + " belongs behind " + door.places.front()});
  });
  return found;
}

}  // namespace gradring::rules
