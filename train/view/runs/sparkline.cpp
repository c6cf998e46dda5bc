// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/sparkline.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "train/options/environment_variable.h"

namespace gradring::train {
namespace {

constexpr std::string_view kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::string_view kSigns[] = {"_", ".", ",", "-", "=", "+", "*", "#"};

/// The mean of the finite values; NaN if there is none.
double mean_of(std::span<const double> values) {
  double mean = 0;
  std::size_t count = 0;
  for (const double value : values)
    if (std::isfinite(value)) mean += (value - mean) / static_cast<double>(++count);
  return count > 0 ? mean : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

Glyphs glyphs_of_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value = system_variable(name).value_or("");
    if (value.empty()) continue;
    std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
    const bool is_utf8 = value.find("utf-8") != value.npos || value.find("utf8") != value.npos;
    return is_utf8 ? Glyphs::utf8 : Glyphs::ascii;
  }
  return Glyphs::utf8;
}

std::string sparkline(std::span<const double> values, std::size_t width, Glyphs glyphs) {
  const std::span<const std::string_view> levels = glyphs == Glyphs::utf8 ? std::span(kBlocks) : std::span(kSigns);
  const std::size_t columns = std::min(width, values.size());
  std::vector<double> means;
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (std::size_t column = 0; column < columns; ++column) {
    const std::size_t begin = column * values.size() / columns, end = (column + 1) * values.size() / columns;
    means.push_back(mean_of(values.subspan(begin, end - begin)));
    if (std::isnan(means.back())) continue;
    least = std::min(least, means.back());
    most = std::max(most, means.back());
  }
  std::string text;
  for (const double mean : means) {
    if (std::isnan(mean)) {
      text += '!';
      continue;
    }
    const double height = most > least ? (mean - least) / (most - least) : 0;
    text += levels[static_cast<std::size_t>(std::lround(height * static_cast<double>(levels.size() - 1)))];
  }
  return text;
}

}  // namespace gradring::train
