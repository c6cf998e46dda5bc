// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "train/bench/training_table.h"

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

/// A plot of a table.
struct Plot {
  std::string suffix;  ///< of its file; empty: only on the page
  std::string svg;     ///< the text of that file
  std::string figure;  ///< HTML with the same picture
};

/// Samples per second and memory as bars, and the loss of each step: of `bench parallel`.
std::vector<Plot> parallel_plots(const TrainingTable& table);
/// Numbers over the ranks, with a line for each series of rows: of `bench scaling`.
std::vector<Plot> scaling_plots(const TrainingTable& table);

/// A page in one file: the table and the plots.
std::string to_html(const TrainingTable& table, const std::vector<Plot>& plots);

/// Every file of these plots; none if `prefix` is empty.
std::vector<std::string> plot_files(const std::string& prefix);

}  // namespace gradring::train::bench
