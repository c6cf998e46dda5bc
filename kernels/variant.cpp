// SPDX-License-Identifier: Apache-2.0
#include "kernels/variant.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace gradring::kernels {
namespace {

/// Levenshtein's distance: how many letters to insert, delete or change.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t change = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({change, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row[to.size()];
}

}  // namespace

std::string no_such_variant(std::string_view name, std::span<const std::string_view> names) {
  std::string text = "there is no variant '" + std::string(name) + "'";
  if (names.empty()) return text + ": the table is empty";
  const auto nearest = std::min_element(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
  text += ": did you mean '" + std::string(*nearest) + "'? There are:";
  for (std::size_t i = 0; i < names.size(); ++i) text += (i ? ", " : " ") + std::string(names[i]);
  return text;
}

}  // namespace gradring::kernels
