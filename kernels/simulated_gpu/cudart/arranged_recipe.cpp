// SPDX-License-Identifier: Apache-2.0
// A graph that was built by hand, in an order in which it can be launched.
#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/simulated_gpu/cudart/objects.h"

namespace gradring::simulated_gpu {
namespace {

/// The nodes in an order in which each is behind those that it waits for.
std::vector<std::size_t> sorted(const Recipe& recipe) {
  std::vector<std::size_t> unmet(recipe.nodes.size());
  std::vector<Frontier> dependents(recipe.nodes.size());
  for (std::size_t node = 0; node < recipe.nodes.size(); ++node) {
    unmet[node] = recipe.nodes[node].after.size();
    for (const std::size_t other : recipe.nodes[node].after) dependents[other].push_back(node);
  }
  std::vector<std::size_t> order;
  for (std::size_t node = 0; node < unmet.size(); ++node)
    if (unmet[node] == 0) order.push_back(node);
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const std::size_t dependent : dependents[order[i]])
      if (--unmet[dependent] == 0) order.push_back(dependent);
  if (order.size() != unmet.size()) throw Misuse{cudaErrorInvalidValue, "a graph whose nodes wait for each other"};
  return order;
}

StreamWork nothing() {
  return {.run = [](CountedWork*) { return 0.0; }, .kind = CountedWork::Kind::host_function, .name = "empty node"};
}

/// Appends the nodes of a recipe and of those within it. `after`: what its first nodes wait for. Returns the positions
/// of its nodes.
std::vector<std::size_t> append(Recipe& made, const Recipe& recipe, const Frontier& after) {
  std::vector<std::size_t> positions(recipe.nodes.size());
  for (const std::size_t node : sorted(recipe)) {
    const Recipe::Node& from = recipe.nodes[node];
    Frontier own;
    for (const std::size_t other : from.after) own.push_back(positions[other]);
    if (from.after.empty()) own = after;
    StreamWork work = from.work;
    if (from.child) {  // behind its last nodes, whichever these are: one that waits for all of them
      const std::vector<std::size_t> within = append(made, *from.child, own);
      own.insert(own.end(), within.begin(), within.end());
      work = nothing();
    }
    positions[node] = made.nodes.size();
    made.nodes.push_back({.work = std::move(work), .branch = 0, .after = std::move(own)});
  }
  return positions;
}

/// A node continues the branch of the first that it waits for, if no other does; else it begins one.
void assign_branches(Recipe& recipe) {
  std::vector<bool> is_continued(recipe.nodes.size(), false);
  recipe.branches = 0;
  for (Recipe::Node& node : recipe.nodes) {
    const auto free = std::ranges::find_if(node.after, [&](std::size_t other) { return !is_continued[other]; });
    if (free == node.after.end()) {
      node.branch = recipe.branches++;
    } else {
      is_continued[*free] = true;
      node.branch = recipe.nodes[*free].branch;
    }
  }
}

}  // namespace

ArrangedRecipe arrange(const Graph& graph) {
  if (!graph.is_by_hand) {
    std::vector<std::size_t> same(graph.recipe.nodes.size());
    std::iota(same.begin(), same.end(), 0);
    return {std::make_shared<const Recipe>(graph.recipe), std::move(same)};
  }
  Recipe made{.device = graph.recipe.device};
  std::vector<std::size_t> positions = append(made, graph.recipe, {});
  assign_branches(made);
  return {std::make_shared<const Recipe>(std::move(made)), std::move(positions)};
}

}  // namespace gradring::simulated_gpu
