// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::train::page {

enum class ScaleKind : std::uint8_t { linear, logarithmic };

/// Where a value lies on an axis.
class Scale {
 public:
  struct Tick {
    double value = 0;
    std::string label{};
  };

  /// From `low` to `high`; ends that are reversed, or equal to nine digits, are widened. Logarithmic becomes linear unless
  /// both ends are positive.
  Scale(ScaleKind kind, double low, double high);

  /// 0 at the low end, 1 at the high end.
  double at(double value) const;
  /// At most about `most` round values within the ends.
  std::vector<Tick> ticks(int most, bool percent = false) const;

  double low() const { return low_; }
  double high() const { return high_; }
  /// The same with ends at round values.
  Scale rounded(int most) const;

 private:
  double step(int most) const;

  ScaleKind kind_;
  double low_;
  double high_;
};

/// Where the labels of vertical lines are, in rows at the top of a drawing, so that they overlap neither each other nor
/// another's line. A line begins at the row of its label and goes down; one without a label begins below all rows.
class MarkLabels {
 public:
  /// `character_width` is that of a letter in per cent of the drawing's width.
  MarkLabels(int rows, double character_width) : rows_(rows), character_width_(character_width) {}

  struct Position {
    int row = 0;
    bool is_left = false;  ///< of its line, where there is no room to the right
  };
  /// The position of the next label, to the right of those before; nothing if there is no room. `x` in per cent.
  std::optional<Position> add(double x, std::string_view label);

 private:
  struct Taken {
    double begin, end;  // of the label
    double line;
    int row;
  };

  bool is_free(const Taken& wanted) const;

  int rows_;
  double character_width_;
  std::vector<Taken> taken_;
};

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
