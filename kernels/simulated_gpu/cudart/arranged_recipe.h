// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/simulated_gpu/cudart/objects.h"

namespace gradring::simulated_gpu {

/// A recipe that can be launched: each node is behind earlier ones only, and there are no graphs within it.
struct ArrangedRecipe {
  std::shared_ptr<const Recipe> recipe;
  std::vector<std::size_t> positions;  ///< of the graph's nodes, by their index; of a graph within it: its last node
};

/// Errors    Misuse if nodes wait for each other in a circle.
ArrangedRecipe arrange(const Graph& graph);

}  // namespace gradring::simulated_gpu
