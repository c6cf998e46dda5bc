// SPDX-License-Identifier: Apache-2.0
#include "train/view/page/polyline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace gradring::train::page {
namespace {

/// A number of a path: a minus sign separates as well as a blank.
void append_number(std::string& path, int number, bool is_first) {
  if (!is_first && number >= 0) path += ' ';
  fmt::format_to(std::back_inserter(path), "{}", number);
}

/// Continues a path that is at `from` by lines.
void append_lines(std::string& path, GridPoint from, std::span<const GridPoint> points) {
  bool is_first = true;
  for (const GridPoint& point : points) {
    if (point == from) continue;
    if (is_first) path += 'l';
    append_number(path, point.x - from.x, is_first);
    append_number(path, point.y - from.y, false);
    is_first = false;
    from = point;
  }
}

}  // namespace

std::vector<GridPoint> reduced(std::span<const GridPoint> points) {
  std::vector<GridPoint> kept;
  for (auto begin = points.begin(); begin != points.end();) {
    const auto end = std::find_if(begin, points.end(), [&](const GridPoint& point) { return point.x != begin->x; });
    const auto [lowest, highest] =
        std::minmax_element(begin, end, [](const GridPoint& a, const GridPoint& b) { return a.y < b.y; });
    for (const auto each : std::set{begin, lowest, highest, end - 1}) kept.push_back(*each);
    begin = end;
  }
  return kept;
}

std::string path_through(std::span<const GridPoint> points) {
  if (points.empty()) return {};
  std::string path = fmt::format("M{} {}", points[0].x, points[0].y);
  if (points.size() == 1) return path + "h0";  // a dot, with round caps
  append_lines(path, points[0], points.subspan(1));
  return path;
}

std::string path_between(std::span<const GridPoint> upper, std::span<const GridPoint> lower) {
  if (upper.empty()) return {};
  std::vector<GridPoint> outline(upper.begin(), upper.end());
  outline.insert(outline.end(), lower.rbegin(), lower.rend());
  return path_through(outline) + "z";
}

}  // namespace gradring::train::page
