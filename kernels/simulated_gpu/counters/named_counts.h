// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/simulated_gpu/counters/launch_counts.h"

namespace gradring::simulated_gpu {

/// Names of the bound of the time, and of that of instructions alone, which holds whatever is in caches.
inline constexpr std::string_view kBound = "bound of the time", kBoundOfInstructions = "bound of the instructions";

/// One counter of some launches.
struct NamedCount {
  std::string_view name;  ///< "load sectors"
  std::string_view unit;
  double value = 0;
  bool is_cost = false;  ///< instructions and the bound: the less the better. The others explain these.
};

/// Every counter of these launches: sums; of registers and spills the most, of resident warps the fewest.
std::vector<NamedCount> named_counts(std::span<const LaunchCounts* const> launches);

}  // namespace gradring::simulated_gpu
