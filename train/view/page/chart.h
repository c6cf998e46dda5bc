// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/view/page/document.h"
#include "train/view/page/drawing.h"

namespace gradring::train::page {

/// A line of a chart.
struct Series {
  std::string name{};       ///< in the legend; empty: not there
  std::vector<double> x{};  ///< ascending
  std::vector<double> y{};  ///< as many; a value that is not finite interrupts the line
  int color = 0;            ///< of the palette, modulo kColors
  bool faint = false;       ///< behind the others, for example values behind their mean
  bool dots = false;        ///< a dot with its values as tooltip at each point
  bool dashed = false;
};

enum class MarkKind : std::uint8_t { fault, restart, note };

/// A vertical line at one x, for example a fault.
struct Mark {
  double x = 0;
  std::string label{};  ///< beside the line, and its tooltip
  MarkKind kind = MarkKind::note;
};

/// A line chart, or with `stacked` areas on top of each other.
///
/// Texts     plain, in any characters; they are escaped.
struct Chart {
  std::string title{};
  std::string caption{};                  ///< what is shown, in which unit; empty: none
  std::string x_label{};                  ///< "step"
  std::string y_unit{};                   ///< behind the y of tooltips: "samples/s"
  ScaleKind x_scale = ScaleKind::linear;  ///< logarithmic: a grid line at each tick; only what has x > 0 is shown
  ScaleKind y_scale = ScaleKind::linear;
  bool percent = false;      ///< y values are fractions, shown in per cent
  bool from_zero = false;    ///< the y axis includes 0
  bool x_from_zero = false;  ///< the x axis does, if it is linear
  bool stacked = false;      ///< all series have the same x; each is added to the one before
  bool label_marks = true;
  std::vector<Series> series{};
  std::vector<Mark> marks{};
};

/// An HTML figure: title, legend, an inline SVG as wide as its container, caption. Its colours are those of `document`.
/// Long series are reduced to their extremes in each of kColumns columns, and of many marks or dots some hundred are
/// shown, which the caption says, so the size has a bound. "No values" in place of a chart without finite values.
std::string figure(const Chart& chart);

/// The text of a file.svg with its own colours, light and dark.
std::string svg_file(const Chart& chart);

/// One in so many of `count` things is shown, so that they are at most `most`.
std::size_t stride_of(std::size_t count, std::size_t most);
/// " One in 3 of 600 dots is shown.", for a caption; nothing if all are.
std::string omission_text(std::string_view things, std::size_t count, std::size_t most);

}  // namespace gradring::train::page
