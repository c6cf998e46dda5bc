// SPDX-License-Identifier: Apache-2.0
#include "train/view/page/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "train/view/page/number_text.h"

namespace gradring::train::page {
namespace {

/// 1, 2 or 5 times a power of ten, at least `step`.
double round_step(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

/// `factor` times a power of ten: "2e-5", "0.001", "0.5", "1,000", "1e6".
std::string decade_label(double factor, int power) {
  constexpr int kLeastDigits = -3, kMostDigits = 5;
  if (power < kLeastDigits || power > kMostDigits) return fmt::format("{:.0f}e{}", factor, power);
  return short_number(factor * std::pow(10, power));
}

int decimals_of(double step) { return std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9))); }

/// A number of a path: a minus sign separates as well as a blank.
void append_number(std::string& path, int number, bool is_first) {
  if (!is_first && number >= 0) path += ' ';
  fmt::format_to(std::back_inserter(path), "{}", number);
}

/// Continues a path that is at `from` by lines.
void append_lines(std::string& path, GridPoint from, std::span<const GridPoint> points) {
  bool is_first = true;
  for (const GridPoint& point : points) {
    if (point == from) continue;
    if (is_first) path += 'l';
    append_number(path, point.x - from.x, is_first);
    append_number(path, point.y - from.y, false);
    is_first = false;
    from = point;
  }
}

}  // namespace

Scale::Scale(ScaleKind kind, double low, double high) : kind_(kind), low_(low), high_(high) {
  constexpr double kLeastRange = 1e-9;  // of the greater end: below it, labels are equal and steps are lost to rounding
  if (!(high_ - low_ > kLeastRange * std::max(std::abs(low_), std::abs(high_)))) {
    const double margin = low_ == 0 ? 1 : std::abs(low_) / 10;
    high_ = low_ + margin;
    low_ -= margin;
  }
  if (low_ <= 0) kind_ = ScaleKind::linear;
}

double Scale::at(double value) const {
  if (kind_ == ScaleKind::linear) return (value - low_) / (high_ - low_);
  return std::log(value / low_) / std::log(high_ / low_);
}

double Scale::step(int most) const { return round_step((high_ - low_) / std::max(most, 1)); }

std::vector<Scale::Tick> Scale::ticks(int most, bool percent) const {
  std::vector<Tick> ticks;
  if (kind_ == ScaleKind::logarithmic && high_ / low_ >= 10) {
    const double decades = std::log10(high_ / low_);
    const auto per_decade = decades * 3 <= most ? std::vector{1.0, 2.0, 5.0} : std::vector{1.0};
    const int stride = std::max(1, static_cast<int>(std::ceil(decades / most)));
    const double least = low_ * (1 - 1e-9), last = high_ * (1 + 1e-9);
    for (int power = static_cast<int>(std::floor(std::log10(low_))); std::pow(10, power) <= last; power += stride)
      for (const double factor : per_decade)
        if (const double value = factor * std::pow(10, power); value >= least && value <= last)
          ticks.push_back({value, percent ? decade_label(factor, power + 2) + " %" : decade_label(factor, power)});
    return ticks;
  }
  const double step = this->step(most);
  const double shown_step = percent ? 100 * step : step;
  for (double i = std::ceil(low_ / step - 1e-9); i * step <= high_ + 1e-9 * step; ++i) {
    const double value = i == 0 ? 0 : i * step;  // never -0
    const double shown = percent ? 100 * value : value;
    const bool is_small = std::max(std::abs(low_), std::abs(high_)) < 1e-3;
    const std::string text = is_small && value != 0 ? fmt::format("{:.3g}", shown)
                                                    : grouped(fmt::format("{:.{}f}", shown, decimals_of(shown_step)));
    ticks.push_back({value, text + (percent ? " %" : "")});
  }
  return ticks;
}

Scale Scale::rounded(int most) const {
  if (kind_ == ScaleKind::logarithmic) return *this;
  const double step = this->step(most);
  return {kind_, std::floor(low_ / step + 1e-9) * step, std::ceil(high_ / step - 1e-9) * step};
}

bool MarkLabels::is_free(const Taken& wanted) const {
  return std::ranges::none_of(taken_, [&wanted](const Taken& other) {
    const bool overlaps = other.row == wanted.row && other.begin < wanted.end && wanted.begin < other.end;
    const bool crosses = other.begin < wanted.line && wanted.line < other.end && other.row >= wanted.row;
    const bool is_crossed = wanted.begin < other.line && other.line < wanted.end && wanted.row >= other.row;
    return overlaps || crosses || is_crossed;
  });
}

std::optional<MarkLabels::Position> MarkLabels::add(double x, std::string_view label) {
  const auto characters = std::ranges::count_if(label, [](char byte) { return (byte & 0xC0) != 0x80; });  // of UTF-8
  const double width = character_width_ * static_cast<double>(characters + 1);
  const bool is_left = x + width > 100;
  for (int row = 0; row < rows_; ++row) {
    const Taken wanted{.begin = is_left ? x - width : x, .end = is_left ? x : x + width, .line = x, .row = row};
    if (wanted.begin < 0 || !is_free(wanted)) continue;
    taken_.push_back(wanted);
    return Position{.row = row, .is_left = is_left};
  }
  return std::nullopt;
}

std::vector<GridPoint> reduced(std::span<const GridPoint> points) {
  std::vector<GridPoint> kept;
  for (auto begin = points.begin(); begin != points.end();) {
    const auto end = std::find_if(begin, points.end(), [&](const GridPoint& point) { return point.x != begin->x; });
    const auto [lowest, highest] =
        std::minmax_element(begin, end, [](const GridPoint& a, const GridPoint& b) { return a.y < b.y; });
    for (const auto each : std::set{begin, lowest, highest, end - 1}) kept.push_back(*each);
    begin = end;
  }
  return kept;
}

std::string path_through(std::span<const GridPoint> points) {
  if (points.empty()) return {};
  std::string path = fmt::format("M{} {}", points[0].x, points[0].y);
  if (points.size() == 1) return path + "h0";  // a dot, with round caps
  append_lines(path, points[0], points.subspan(1));
  return path;
}

std::string path_between(std::span<const GridPoint> upper, std::span<const GridPoint> lower) {
  if (upper.empty()) return {};
  std::vector<GridPoint> outline(upper.begin(), upper.end());
  outline.insert(outline.end(), lower.rbegin(), lower.rend());
  return path_through(outline) + "z";
}

}  // namespace gradring::train::page
