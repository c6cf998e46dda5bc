// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gradring::train::bench {

struct Bar {
  std::string name;
  double value = 0;  ///< at least 0
  std::string text;  ///< behind the bar
  int color = 0;     ///< of train/view/page's palette
};

/// Horizontal bars from 0, one under the other.
struct BarChart {
  std::string title;
  std::vector<Bar> bars;
};

/// The text of a file.svg with its own colours, light and dark.
std::string svg_file(const BarChart& chart, int width = 860);
/// An HTML figure with the same picture.
std::string figure(const BarChart& chart);

}  // namespace gradring::train::bench
