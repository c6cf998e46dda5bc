// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace gradring::train {
namespace {

/// Levenshtein's distance, one row of the table at a time.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] != to[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[to.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> names) {
  std::string best;
  std::size_t fewest = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : names)
    if (const std::size_t changes = distance(name, candidate); changes < fewest) {
      fewest = changes;
      best = candidate;
    }
  return best;
}

}  // namespace gradring::train
