// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/base/printable.h"
#include "train/options/environment_variable.h"
#include "train/records/metrics/loss_text.h"

namespace gradring::train {
namespace {

constexpr std::string_view kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::string_view kSigns[] = {"_", ".", ",", "-", "=", "+", "*", "#"};

/// The mean of the finite values; NaN without any.
double mean_of(std::span<const double> values) {
  double mean = 0;
  std::size_t count = 0;
  for (const double value : values)
    if (std::isfinite(value)) mean += (value - mean) / static_cast<double>(++count);
  return count > 0 ? mean : std::numeric_limits<double>::quiet_NaN();
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U; }

/// Where the code point `index` begins.
std::size_t offset_of(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if (begins_character(text[at]) && index-- == 0) break;
  return at;
}

std::size_t total_of(const std::vector<std::size_t>& widths, std::size_t gap) {
  return std::accumulate(widths.begin(), widths.end(), widths.empty() ? 0 : gap * (widths.size() - 1));
}

/// Takes columns from the widest ones that may be shortened, until all fit.
void fit(std::vector<std::size_t>& widths, const TextTable& table, std::size_t width) {
  const std::vector<TextColumn>& columns = table.columns;
  while (total_of(widths, table.gap) > width) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (columns[i].least > 0 && widths[i] > columns[i].least &&
          (widest == widths.size() || widths[i] > widths[widest]))
        widest = i;
    if (widest == widths.size()) return;
    --widths[widest];
  }
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

std::vector<double> part_means(std::span<const double> values, std::size_t parts) {
  parts = std::min(parts, values.size());
  std::vector<double> means;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = part * values.size() / parts, end = (part + 1) * values.size() / parts;
    means.push_back(mean_of(values.subspan(begin, end - begin)));
  }
  return means;
}

std::string sparkline(std::span<const double> values, std::size_t width, Glyphs glyphs) {
  const std::span<const std::string_view> levels = glyphs == Glyphs::utf8 ? std::span(kBlocks) : std::span(kSigns);
  const std::vector<double> means = part_means(values, width);
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const double mean : means) {
    if (std::isnan(mean)) continue;
    least = std::min(least, mean);
    most = std::max(most, mean);
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

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

std::string padded(std::string_view text, std::size_t columns, bool right_aligned) {
  const std::string blanks(columns - std::min(columns, columns_of(text)), ' ');
  return right_aligned ? blanks + std::string(text) : std::string(text) + blanks;
}

std::string shortened(std::string_view text, std::size_t columns, Glyphs glyphs, bool in_the_middle) {
  const std::string shown = printable(text);
  const std::size_t all = columns_of(shown);
  if (all <= columns) return shown;
  if (columns == 0) return {};
  const std::size_t tail = in_the_middle ? (columns - 1) / 2 : 0;
  return shown.substr(0, offset_of(shown, columns - 1 - tail)) + (glyphs == Glyphs::utf8 ? "…" : "~") +
         shown.substr(offset_of(shown, all - tail));
}

TextTable TextTable::with(const std::vector<std::string>& texts, const std::vector<std::string>& numbers) {
  TextTable table{.gap = 2};
  for (const std::string& head : texts) table.columns.push_back({.head = head});
  for (const std::string& head : numbers) table.columns.push_back({.head = head, .right_aligned = true});
  return table;
}

std::string TextTable::text(std::optional<std::size_t> width, Glyphs glyphs) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t widest = columns_of(columns[i].head);
    for (const auto& row : rows) widest = std::max(widest, columns_of(printable(row.at(i))));
    widths.push_back(widest);
  }
  if (width) fit(widths, *this, *width);
  std::string text;
  const auto add_line = [&](const auto& cell_at) {
    std::string line;
    for (std::size_t i = 0; i < columns.size(); ++i)
      line +=
          (i > 0 ? std::string(gap, ' ') : "") +
          padded(shortened(cell_at(i), widths[i], glyphs, columns[i].keeps_ends), widths[i], columns[i].right_aligned);
    line.erase(line.find_last_not_of(' ') + 1);
    text += (width ? shortened(line, *width, glyphs) : line) + "\n";
  };
  add_line([this](std::size_t i) -> const std::string& { return columns[i].head; });
  for (const auto& row : rows) add_line([&row](std::size_t i) -> const std::string& { return row[i]; });
  return text;
}

std::string duration_text(double seconds) {
  if (!(seconds > 0) || !std::isfinite(seconds)) return "-";
  const auto whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}d{:02}h", whole / 86400, whole / 3600 % 24);
}

std::string percent_text(std::optional<double> fraction) {
  return fraction ? fmt::format("{:.2f}", 100 * *fraction) : "-";
}

std::string loss_text(std::optional<double> loss) { return loss ? loss_text(*loss) : "-"; }

}  // namespace gradring::train
