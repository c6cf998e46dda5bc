// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace gradring::train::page {

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

}  // namespace gradring::train::page
