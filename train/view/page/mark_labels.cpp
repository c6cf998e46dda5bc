// SPDX-License-Identifier: Apache-2.0
#include "train/view/page/mark_labels.h"

#include <algorithm>

namespace gradring::train::page {

bool MarkLabels::is_free(const Taken& wanted) const {
  return std::ranges::none_of(taken_, [&wanted](const Taken& other) {
    const bool overlaps = other.row == wanted.row && other.begin < wanted.end && wanted.begin < other.end;
    const bool crosses = other.begin < wanted.line && wanted.line < other.end && other.row >= wanted.row;
    const bool is_crossed = wanted.begin < other.line && other.line < wanted.end && wanted.row >= other.row;
    return overlaps || crosses || is_crossed;
  });
}

std::optional<MarkLabels::Position> MarkLabels::add(double x, std::string_view label) {
  const auto characters = std::ranges::count_if(label, [](char byte) { return (byte & 0xC0) != 0x80; });  // of UTF-8
  const double width = character_width_ * static_cast<double>(characters + 1);
  const bool is_left = x + width > 100;
  for (int row = 0; row < rows_; ++row) {
    const Taken wanted{.begin = is_left ? x - width : x, .end = is_left ? x : x + width, .line = x, .row = row};
    if (wanted.begin < 0 || !is_free(wanted)) continue;
    taken_.push_back(wanted);
    return Position{.row = row, .is_left = is_left};
  }
  return std::nullopt;
}

}  // namespace gradring::train::page
