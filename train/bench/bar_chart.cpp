// SPDX-License-Identifier: Apache-2.0
#include "train/bench/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

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

/// Its opening tag, without the end, behind `begin`: "<svg ".
std::string opening(std::string_view begin, const BarChart& chart, int width) {
  return fmt::format(R"({}xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img" aria-label="{}")", begin,
                     width, kTop + kRow * std::ssize(chart.bars) + 12, escaped(chart.title));
}

}  // namespace

std::string svg_file(const BarChart& chart, int width) {
  return fmt::format(
      R"({} width="{}"><style>{}</style><rect class="ground" width="100%" height="100%"/><text class="title" x="16" y="22">{}</text>{}</svg>)"
      "\n",
      opening(page::kPictureBegin, chart, width), width, page::kChartStyle, escaped(chart.title),
      bars_of(chart, width));
}

std::string figure(const BarChart& chart) {
  constexpr int kWidth = 640;
  return fmt::format(
      R"(<figure>{} style="width:100%;height:auto"><text class="title" x="16" y="22">{}</text>{}</svg></figure>)",
      opening("<svg ", chart, kWidth), escaped(chart.title), bars_of(chart, kWidth));
}

}  // namespace gradring::train::bench
