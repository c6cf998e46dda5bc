// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/runtime/error.h"

namespace gradring::data {
namespace {

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> edits(b.size() + 1);  // from the first i letters of a to the first j of b
  std::iota(edits.begin(), edits.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(edits[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (same_letter(a[i - 1], b[j - 1]) ? 0 : 1);
      diagonal = std::exchange(edits[j], std::min({replaced, edits[j] + 1, edits[j - 1] + 1}));
    }
  }
  return edits[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view typed, std::span<const std::string_view> names) {
  check(!names.empty(), "there are no names to choose from");
  return *std::min_element(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return edits_between(typed, a) < edits_between(typed, b);
  });
}

}  // namespace gradring::data
