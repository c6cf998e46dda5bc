// SPDX-License-Identifier: Apache-2.0
#include "train/view/page/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "train/view/page/generator.h"
#include "train/view/page/html.h"
#include "train/view/page/number_text.h"
#include "train/view/page/style.h"

namespace gradring::train::page {
namespace {

constexpr int kMostTicks = 5;
constexpr int kMostDecades = 8;  // with a tick on a logarithmic x axis
constexpr int kMarkRows = 3;
constexpr int kRowHeight = 14;
constexpr double kCharacterWidth = 2.2;  // per cent of a narrow chart
/// Of a chart's marks, and of a series' dots, if there are more.
constexpr std::size_t kMostMarks = 200;
constexpr std::size_t kMostDots = 500;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return low > high; }
};

/// What is left out of a chart, for its caption.
std::string omissions_of(const Chart& chart) {
  std::size_t dots = 0;
  for (const Series& series : chart.series)
    if (series.dots) dots = std::max(dots, series.y.size());
  return omission_text("dots", dots, kMostDots) + omission_text("marks", chart.marks.size(), kMostMarks);
}

/// The chart with each series on top of those before it.
Chart with_sums(Chart chart) {
  for (std::size_t i = 1; chart.stacked && i < chart.series.size(); ++i)
    for (std::size_t k = 0; k < chart.series[i].y.size(); ++k) chart.series[i].y[k] += chart.series[i - 1].y[k];
  return chart;
}

/// What is inside the axes, in per cent of an SVG that has their size; axis labels overflow it.
class Drawing {
 public:
  explicit Drawing(const Chart& original) : chart_(with_sums(original)) {
    Range x, y;
    for (const Series& series : chart_.series)
      for (std::size_t i = 0; i < series.y.size(); ++i)
        if (is_shown(series, i)) {
          x.include(series.x[i]);
          y.include(series.y[i]);
        }
    is_empty_ = y.is_empty();
    if (is_empty_) return;
    std::erase_if(chart_.marks, [this](const Mark& mark) { return !fits(chart_.x_scale, mark.x); });
    for (const Mark& mark : chart_.marks) x.include(mark.x);
    if (chart_.from_zero || chart_.stacked) y.include(0);
    if (chart_.percent && y.low == y.high) y.include(std::max(0.0, y.low - 0.1));  // not beyond 100 %
    if (chart_.x_from_zero && chart_.x_scale == ScaleKind::linear) x.include(0);
    x_ = Scale(chart_.x_scale, x.low, x.high);
    y_ = Scale(chart_.y_scale, y.low, y.high).rounded(kMostTicks);
  }

  bool is_empty() const { return is_empty_; }

  std::string svg_content() const {
    std::string text;
    append_grid(text);
    for (std::size_t i = 0; i < chart_.series.size(); ++i) append_lines(text, i);
    for (const Series& series : chart_.series)
      if (series.dots) append_dots(text, series);
    append_marks(text);
    return text;
  }

 private:
  /// Values beyond 1e100 are left out: their differences and quotients are no numbers.
  static bool fits(ScaleKind scale, double value) {
    constexpr double kLargest = 1e100;
    return std::abs(value) <= kLargest && (scale == ScaleKind::linear || value >= 1 / kLargest);
  }
  bool is_shown(const Series& series, std::size_t i) const {
    return fits(chart_.x_scale, series.x[i]) && fits(chart_.y_scale, series.y[i]);
  }
  double left(double x) const { return 100 * x_.at(x); }
  double top(double y) const { return 100 * (1 - y_.at(y)); }
  std::string shown(double y) const {
    const std::string number = chart_.percent ? percent_text(y) : short_number(y);
    return chart_.y_unit.empty() ? number : number + " " + chart_.y_unit;
  }

  void append_grid(std::string& text) const {
    for (const Scale::Tick& tick : y_.ticks(kMostTicks, chart_.percent))
      text += fmt::format(
          R"(<line class="grid" x2="100%" y1="{0:.2f}%" y2="{0:.2f}%"/><text class="tick" x="-8" y="{0:.2f}%" dy=".35em" text-anchor="end">{1}</text>)",
          top(tick.value), tick.label);
    const bool has_decades = chart_.x_scale == ScaleKind::logarithmic;
    for (const Scale::Tick& tick : x_.ticks(has_decades ? kMostDecades : kMostTicks)) {
      if (has_decades)
        text += fmt::format(R"(<line class="grid" x1="{0:.2f}%" x2="{0:.2f}%" y2="100%"/>)", left(tick.value));
      text += fmt::format(R"(<text class="tick" x="{:.2f}%" y="100%" dy="1.6em" text-anchor="middle">{}</text>)",
                          left(tick.value), tick.label);
    }
    text += fmt::format(
        R"(<line class="axis" x2="100%" y1="100%" y2="100%"/><text class="tick" x="100%" y="100%" dy="2.9em" text-anchor="end">{}</text>)",
        escaped(chart_.x_label));
  }

  GridPoint on_grid(double x, double y) const {
    return {static_cast<int>(std::lround(kColumns * x_.at(x))), static_cast<int>(std::lround(kRows * (1 - y_.at(y))))};
  }

  /// The points of a series, without those that are not shown; each piece is one line. More pieces than columns are
  /// joined: their gaps could not be seen.
  std::vector<std::vector<GridPoint>> pieces_of(const Series& series) const {
    std::vector<std::vector<GridPoint>> pieces(1);
    for (std::size_t i = 0; i < series.y.size(); ++i)
      if (is_shown(series, i))
        pieces.back().push_back(on_grid(series.x[i], series.y[i]));
      else if (!pieces.back().empty())
        pieces.emplace_back();
    if (pieces.back().empty()) pieces.pop_back();
    if (pieces.size() <= kColumns) return pieces;
    std::vector<GridPoint> joined;
    for (const auto& piece : pieces) joined.insert(joined.end(), piece.begin(), piece.end());
    return {std::move(joined)};
  }

  void append_lines(std::string& text, std::size_t index) const {
    const Series& series = chart_.series[index];
    std::string path;
    if (chart_.stacked) {
      std::vector<GridPoint> upper, lower;
      for (std::size_t i = 0; i < series.y.size(); ++i) {
        if (!is_shown(series, i)) continue;
        upper.push_back(on_grid(series.x[i], series.y[i]));
        lower.push_back(on_grid(series.x[i], index == 0 ? 0 : chart_.series[index - 1].y[i]));
      }
      path = path_between(upper, lower);
    } else {
      for (const auto& piece : pieces_of(series)) path += path_through(reduced(piece));
    }
    text += fmt::format(
        R"(<svg viewBox="0 0 {} {}" width="100%" height="100%" preserveAspectRatio="none" overflow="visible"><path class="{}{}{} c{}" d="{}"/></svg>)",
        kColumns, kRows, chart_.stacked ? "area" : "line", series.faint ? " faint" : "", series.dashed ? " dashed" : "",
        series.color % kColors, path);
  }

  void append_dots(std::string& text, const Series& series) const {
    for (std::size_t i = 0; i < series.y.size(); i += stride_of(series.y.size(), kMostDots))
      if (is_shown(series, i))
        text += fmt::format(R"(<circle class="dot c{}" cx="{:.2f}%" cy="{:.2f}%" r="3.5"><title>{}</title></circle>)",
                            series.color % kColors, left(series.x[i]), top(series.y[i]),
                            escaped(fmt::format("{}{}{} {}: {}", series.name, series.name.empty() ? "" : ", ",
                                                chart_.x_label, short_number(series.x[i]), shown(series.y[i]))));
  }

  /// Labels without room are tooltips only.
  void append_marks(std::string& text) const {
    MarkLabels labels(kMarkRows, kCharacterWidth);
    for (std::size_t i = 0; i < chart_.marks.size(); i += stride_of(chart_.marks.size(), kMostMarks)) {
      const Mark& mark = chart_.marks[i];
      const char* kind = mark.kind == MarkKind::fault ? "fault" : mark.kind == MarkKind::restart ? "restart" : "note";
      const double x = left(mark.x);
      std::optional<MarkLabels::Position> position;
      if (chart_.label_marks) position = labels.add(x, mark.label);
      const int row = position ? position->row : chart_.label_marks ? kMarkRows : 0;
      text += fmt::format(R"(<g class="mark {}"><title>{}</title><line x1="{:.2f}%" x2="{:.2f}%" y1="{}" y2="100%"/>)",
                          kind, escaped(mark.label), x, x, kRowHeight * row);
      if (position)
        text += fmt::format(R"(<text x="{:.2f}%" y="{}" dx="{}" text-anchor="{}">{}</text>)", x, 12 + kRowHeight * row,
                            position->is_left ? -5 : 5, position->is_left ? "end" : "start", escaped(mark.label));
      text += "</g>";
    }
  }

  Chart chart_;
  bool is_empty_ = false;
  Scale x_{ScaleKind::linear, 0, 1};
  Scale y_{ScaleKind::linear, 0, 1};
};

std::vector<std::pair<std::string, int>> keys_of(const Chart& chart) {
  std::vector<std::pair<std::string, int>> keys;
  for (const Series& series : chart.series)
    if (!series.name.empty()) keys.emplace_back(series.name, series.color % kColors);
  return keys;
}

}  // namespace

std::size_t stride_of(std::size_t count, std::size_t most) {
  return std::max<std::size_t>(1, (count + most - 1) / most);
}

std::string omission_text(std::string_view things, std::size_t count, std::size_t most) {
  const std::size_t stride = stride_of(count, most);
  if (stride == 1) return {};
  return fmt::format(" One in {} of {} {} is shown.", stride, count_text(static_cast<std::int64_t>(count)), things);
}

std::string figure(const Chart& chart) {
  std::string text =
      fmt::format(R"(<figure class="chart"><h3>{}</h3>{})", escaped(chart.title), legend(keys_of(chart)));
  const Drawing drawing(chart);
  if (drawing.is_empty())
    text += R"(<p class="empty">No values.</p>)";
  else
    text += fmt::format(
        R"(<div class="plot"><svg class="axes" role="img" aria-label="{}" width="100%" height="100%">{}</svg></div>)",
        escaped(chart.title), drawing.svg_content());
  if (const std::string caption = chart.caption + omissions_of(chart); !caption.empty())
    text += fmt::format("<figcaption>{}</figcaption>", escaped(caption));
  return text + "</figure>\n";
}

std::string svg_file(const Chart& chart) {
  constexpr int kWidth = 860, kHeight = 320;  // pixels
  constexpr int kLeft = 64, kTop = 52, kRight = 28, kBottom = 48;
  std::string text = fmt::format(
      R"({5}xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" aria-label="{2}"><style>{3}</style><rect class="ground" width="100%" height="100%"/><text class="title" x="{4}" y="22">{2}</text>)",
      kWidth, kHeight, escaped(chart.title), kChartStyle, kLeft, kPictureBegin);
  int x = kLeft;
  for (const auto& [name, color] : keys_of(chart)) {
    text += fmt::format(R"(<line class="line c{}" x1="{}" x2="{}" y1="36" y2="36"/><text x="{}" y="40">{}</text>)",
                        color, x, x + 16, x + 22, escaped(name));
    x += 40 + 7 * static_cast<int>(name.size());
  }
  const Drawing drawing(chart);
  text += fmt::format(R"(<svg class="axes" x="{}" y="{}" width="{}" height="{}" overflow="visible">{}</svg></svg>)",
                      kLeft, kTop, kWidth - kLeft - kRight, kHeight - kTop - kBottom,
                      drawing.is_empty() ? "<text y=\"50%\">No values.</text>" : drawing.svg_content());
  return text + "\n";
}

}  // namespace gradring::train::page
