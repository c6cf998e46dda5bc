// SPDX-License-Identifier: Apache-2.0
#include "tests/rules/folder_graph.h"

#include <algorithm>

#include "tests/rules/rules.h"

namespace gradring::rules {

FolderGraph folder_graph(const SourceTree& tree, std::string (*folder_of)(const std::string& path)) {
  FolderGraph graph;
  each_include(tree, [&](const SourceFile& file, const Include& include) {
    if (!is_production(file) || !tree.paths.contains(include.target)) return;
    const std::string from = folder_of(file.path), to = folder_of(include.target);
    if (from != to) graph[from].insert(to);
  });
  return graph;
}

std::set<std::string> reachable(const FolderGraph& graph, const std::string& start) {
  std::set<std::string> seen;
  std::vector<std::string> pending = {start};
  while (!pending.empty()) {
    const auto node = graph.find(pending.back());
    pending.pop_back();
    if (node == graph.end()) continue;
    for (const std::string& next : node->second)
      if (seen.insert(next).second) pending.push_back(next);
  }
  return seen;
}

namespace {

using Chain = std::vector<std::string>;

Chain chain_from(const FolderGraph& graph, const std::string& folder, const std::string& package,
                 std::map<std::string, Chain>& known) {
  if (const auto found = known.find(folder); found != known.end()) return found->second;
  known[folder] = {folder};  // where there is a circle, a chain ends
  Chain longest;
  if (const auto node = graph.find(folder); node != graph.end())
    for (const std::string& next : node->second)
      if (next == package || next.starts_with(package + "/"))
        longest = std::max(longest, chain_from(graph, next, package, known),
                           [](const Chain& a, const Chain& b) { return a.size() < b.size(); });
  longest.insert(longest.begin(), folder);
  return known[folder] = longest;
}

}  // namespace

std::vector<std::string> longest_chain(const FolderGraph& graph, const std::string& package) {
  std::map<std::string, Chain> known;
  Chain longest;
  for (const auto& [folder, others] : graph)
    if (folder == package || folder.starts_with(package + "/"))
      if (const Chain chain = chain_from(graph, folder, package, known); chain.size() > longest.size()) longest = chain;
  return longest;
}

Violations folder_cycles(const SourceTree& tree) {
  Violations found;
  std::set<std::string> reported;
  for (const auto& graph : {folder_graph(tree, room_of), folder_graph(tree, direct_folder_of)}) {
    std::map<std::string, std::set<std::string>> reach;
    for (const auto& [folder, others] : graph) reach[folder] = reachable(graph, folder);
    for (const auto& [folder, others] : reach) {
      if (!others.contains(folder) || reported.contains(folder)) continue;
      std::string cycle = folder;
      reported.insert(folder);
      for (const std::string& other : others)
        if (other != folder && reach[other].contains(folder)) {
          cycle += ", " + other;
          reported.insert(other);
        }
      found.push_back({folder, 0, "folders that include each other: " + cycle});
    }
  }
  return found;
}

Violations upward_includes(const SourceTree& tree) {
  const FolderGraph graph = folder_graph(tree, folder_of);
  std::map<std::string, std::set<std::string>> reach;
  for (const auto& [folder, others] : graph) reach[folder] = reachable(graph, folder);
  Violations found;
  each_include(tree, [&](const SourceFile& file, const Include& include) {
    if (!is_production(file) || !tree.paths.contains(include.target)) return;
    const std::string from = folder_of(file.path), to = folder_of(include.target);
    if (from.starts_with(to + "/") && reach[to].contains(from))
      found.push_back(
          {file.path, include.line, to + " includes " + from + ", which may not include " + include.target});
  });
  return found;
}

}  // namespace gradring::rules
