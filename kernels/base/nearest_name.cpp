// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace gradring {
namespace {

constexpr std::size_t kLongest = 200;  // no typing error: the comparison takes the product of both lengths

char lower(char letter) { return static_cast<char>(std::tolower(static_cast<unsigned char>(letter))); }

/// Levenshtein's distance: how many letters to insert, delete or change. Small letters and capitals are the same.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t changed = diagonal + (lower(from[i]) == lower(to[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row[to.size()];
}

/// Whether `name` is `full` without some letters, but with the first.
bool abbreviates(std::string_view name, std::string_view full) {
  if (name.size() < 2 || full.empty() || lower(name.front()) != lower(full.front())) return false;
  std::size_t found = 0;
  for (const char letter : full)
    if (found < name.size() && lower(letter) == lower(name[found])) ++found;
  return found == name.size();
}

}  // namespace

std::string_view nearest_spelling(std::string_view name, std::span<const std::string_view> names) {
  std::string_view best;
  if (name.size() > kLongest) return best;
  std::size_t fewest = (name.size() + 1) / 2;
  for (std::string_view candidate : names) {
    const std::size_t changes = edit_distance(name, candidate);
    if (changes >= fewest) continue;
    fewest = changes;
    best = candidate;
  }
  return best;
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names) {
  std::string_view best = nearest_spelling(name, names);
  if (!best.empty() || name.size() > kLongest) return best;
  for (std::string_view candidate : names)
    if (candidate.size() > best.size() && abbreviates(candidate, name)) best = candidate;
  if (!best.empty()) return best;
  constexpr std::size_t kSameLetters = 3;  // at the beginning: wd may be weight-decay or wire-dtype
  if (name.size() < kSameLetters) return best;
  for (std::string_view candidate : names)
    if ((best.empty() || candidate.size() < best.size()) && candidate.starts_with(name.substr(0, kSameLetters)) &&
        abbreviates(name, candidate))
      best = candidate;
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> names) {
  const std::string_view nearest = nearest_name(name, names);
  return nearest.empty() ? std::string() : " Did you mean '" + std::string(nearest) + "'?";
}

}  // namespace gradring
