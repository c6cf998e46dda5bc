// SPDX-License-Identifier: Apache-2.0
#include "train/bench/training_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "train/view/page/chart.h"
#include "train/view/page/document.h"
#include "train/view/page/generator.h"
#include "train/view/page/html.h"
#include "train/view/page/style.h"

namespace gradring::train::bench {
namespace {

using page::escaped;

constexpr int kTop = 36;
constexpr int kRow = 24;
constexpr int kNames = 210;  // width of the column of names
constexpr int kTexts = 110;  // of the texts behind the bars

std::string bars_of(const BarChart& chart, int width) {
  double most = 0;
  for (const Bar& bar : chart.bars) most = std::max(most, bar.value);
  std::string svg;
  int y = kTop;
  for (const Bar& bar : chart.bars) {
    const double length = most > 0 ? bar.value / most * (width - kNames - kTexts) : 0;
    svg += fmt::format(
        R"(<text x="{}" y="{}" text-anchor="end">{}</text><rect class="area c{}" x="{}" y="{}" width="{:.1f}" height="{}"/><text class="tick" x="{:.1f}" y="{}">{}</text>)",
        kNames - 8, y + 15, escaped(bar.name), bar.color, kNames, y + 3, length, kRow - 6, kNames + length + 6, y + 15,
        escaped(bar.text));
    y += kRow;
  }
  return svg;
}

/// An SVG whose tag begins with `begin` and has these attributes besides; `ground` lies below the bars.
std::string picture(std::string_view begin, const BarChart& chart, int width, std::string_view attributes,
                    std::string_view ground = {}) {
  return fmt::format(
      R"({}xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img" aria-label="{}" {}>{}<text class="title" x="16" y="22">{}</text>{}</svg>)",
      begin, width, kTop + kRow * std::ssize(chart.bars) + 12, escaped(chart.title), attributes, ground,
      escaped(chart.title), bars_of(chart, width));
}

/// An HTML figure with the same picture.
std::string figure(const BarChart& chart) {
  constexpr int kWidth = 640;
  return "<figure>" + picture("<svg ", chart, kWidth, R"(style="width:100%;height:auto")") + "</figure>";
}

Plot plot_of(const char* suffix, const BarChart& chart) { return {suffix, svg_file(chart), figure(chart)}; }
Plot plot_of(const char* suffix, const page::Chart& chart) {
  return {suffix, page::svg_file(chart), page::figure(chart)};
}

using page::Chart;
using page::Series;

constexpr double kMebibyte = 1024 * 1024;

/// A colour for PyTorch, one for rows of 16 bits, one for the rest.
int color_of(const TrainingRow& row) {
  if (row.framework != "gradring") return 1;
  return row.layout.precision == "fp32" ? 0 : 3;
}

BarChart speed_chart(const TrainingTable& table) {
  BarChart chart{.title = "samples per second (share of perfect scaling)", .bars = {}};
  for (const TrainingRow& row : table.rows) {
    const double speed = *row.median(&Measurement::samples_per_second);
    const auto efficiency = table.efficiency(row);
    chart.bars.push_back(
        {row.layout.name, speed,
         efficiency ? fmt::format("{:.0f} ({:.2f})", speed, *efficiency) : fmt::format("{:.0f}", speed),
         color_of(row)});
  }
  return chart;
}

BarChart memory_chart(const TrainingTable& table) {
  BarChart chart{.title = "peak memory of rank 0, or of the first device, MiB", .bars = {}};
  for (const TrainingRow& row : table.rows)
    if (const auto bytes = row.median(&Measurement::peak_bytes))
      chart.bars.push_back({row.layout.name, *bytes, fmt::format("{:.1f}", *bytes / kMebibyte), color_of(row)});
  return chart;
}

Chart loss_chart(const TrainingTable& table) {
  Chart chart{.title = "training loss",
              .caption = "Loss of each step before its update, in the last round. Equal global batches train alike.",
              .x_label = "step"};
  for (const TrainingRow& row : table.rows) {
    if (row.rounds.back().losses.empty()) continue;
    Series series{
        .name = row.layout.name, .y = row.rounds.back().losses, .color = static_cast<int>(chart.series.size())};
    for (std::size_t step = 1; step <= series.y.size(); ++step) series.x.push_back(static_cast<double>(step));
    chart.series.push_back(std::move(series));
  }
  return chart;
}

/// A line over the ranks for each series of rows: strong and weak scaling.
Chart over_ranks(const TrainingTable& table, Chart chart,
                 const std::function<std::optional<double>(const TrainingRow&)>& value) {
  std::map<std::string, Series> lines;
  for (const TrainingRow& row : table.rows) {
    Series& line = lines[row.layout.series];
    line.name = row.layout.series;
    line.x.push_back(row.layout.ranks);
    line.y.push_back(value(row).value_or(0));
  }
  for (auto& [series, line] : lines) {
    line.color = static_cast<int>(chart.series.size());
    line.dots = true;
    chart.series.push_back(std::move(line));
  }
  chart.x_label = "ranks";
  chart.from_zero = true;
  return chart;
}

constexpr const char *kSpeed = "-speed.svg", *kMemory = "-memory.svg", *kEfficiency = "-efficiency.svg",
                     *kCommunication = "-communication.svg";

}  // namespace

std::vector<Plot> parallel_plots(const TrainingTable& table) {
  return {plot_of(kSpeed, speed_chart(table)), plot_of(kMemory, memory_chart(table)), plot_of("", loss_chart(table))};
}

std::vector<Plot> scaling_plots(const TrainingTable& table) {
  const Chart efficiency =
      over_ranks(table, {.title = "scaling efficiency", .caption = "1: N ranks do N times the work of one."},
                 [&table](const TrainingRow& row) { return table.efficiency(row); });
  const Chart speed = over_ranks(table, {.title = "samples per second"},
                                 [](const TrainingRow& row) { return row.median(&Measurement::samples_per_second); });
  const Chart communication =
      over_ranks(table, {.title = "share of time in exposed communication", .percent = true},
                 [](const TrainingRow& row) { return row.median(&Measurement::communication); });
  return {plot_of(kEfficiency, efficiency), plot_of("", speed), plot_of(kCommunication, communication)};
}

std::string to_html(const TrainingTable& table, const std::vector<Plot>& plots) {
  page::Table html{.head = {"", "precision"}, .numeric = {false, false}};
  for (const std::string& heading : training_headings()) {
    html.head.push_back(escaped(heading));
    html.numeric.push_back(true);
  }
  for (const TrainingRow& row : table.rows) {
    std::vector<std::string>& cells = html.rows.emplace_back(training_cells(table, row));
    cells.insert(cells.begin(), {escaped(row.layout.name), row.layout.precision});
  }
  std::string body = html.html();
  for (const std::string& remark : table.remarks) body += "<p>" + escaped(remark) + "</p>";
  std::vector<std::string> figures;
  for (const Plot& plot : plots) figures.push_back(plot.figure);
  return page::document(
      table.title, page::section(table.title, body, kernels::bench::to_string(table.provenance) + ". " + table.note) +
                       page::section("Plots", page::chart_grid(figures)));
}

std::vector<std::string> plot_files(const std::string& prefix) {
  if (prefix.empty()) return {};
  return {prefix + kSpeed, prefix + kMemory, prefix + kEfficiency, prefix + kCommunication};
}

std::string svg_file(const BarChart& chart, int width) {
  const std::string ground =
      fmt::format(R"(<style>{}</style><rect class="ground" width="100%" height="100%"/>)", page::kChartStyle);
  return picture(page::kPictureBegin, chart, width, fmt::format(R"(width="{}")", width), ground) + "\n";
}

}  // namespace gradring::train::bench
