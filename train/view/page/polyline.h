// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gradring::train::page {

/// Columns and rows of the coordinates in which lines are drawn, whatever their size on the screen is.
inline constexpr int kColumns = 800;
inline constexpr int kRows = 1000;

/// A point in those coordinates; y grows downwards.
struct GridPoint {
  int x = 0;
  int y = 0;

  bool operator==(const GridPoint&) const = default;
};

/// Points with ascending x, reduced to the first, lowest, highest and last of each column: the same pixels in bounded
/// space.
std::vector<GridPoint> reduced(std::span<const GridPoint> points);

/// The data of an SVG path through the points: "M0 5l1-3 2 4".
std::string path_through(std::span<const GridPoint> points);

/// That of the area between two lines of the same x.
std::string path_between(std::span<const GridPoint> upper, std::span<const GridPoint> lower);

}  // namespace gradring::train::page
