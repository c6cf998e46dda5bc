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
/// An HTML figure with the same picture.
std::string figure(const BarChart& chart);

/// A page in one file: the table, samples per second and memory as bars, and the loss of each step.
std::string to_html(const TrainingTable& table);

/// Every file that write_plots or write_scaling_plots writes; none if `prefix` is empty.
std::vector<std::string> plot_files(const std::string& prefix);

/// The bars as PREFIX-speed.svg and PREFIX-memory.svg; none if `prefix` is empty.
///
/// Errors    EnvironmentError with path and reason.
void write_plots(const TrainingTable& table, const std::string& prefix);

/// What `bench scaling` shows: the table, and its numbers over the ranks, with a line for each series of rows.
std::string scaling_html(const TrainingTable& table);
/// PREFIX-efficiency.svg and PREFIX-communication.svg.
void write_scaling_plots(const TrainingTable& table, const std::string& prefix);

}  // namespace gradring::train::bench
