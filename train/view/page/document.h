// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradring::train::page {

/// A page in one file: no script, no other file, light and dark by the reader's preference.
///
/// `title` is plain text, `body` is HTML.
std::string document(std::string_view title, std::string_view body);

/// A heading and what is below it. `heading` and `note` are plain text, `body` is HTML.
std::string section(std::string_view heading, std::string_view body, std::string_view note = {});

/// Colours of the palette, numbered from 0; others are taken modulo it.
inline constexpr int kColors = 8;

/// Names beside their colours.
std::string legend(const std::vector<std::pair<std::string, int>>& names);

/// A part of a bar.
struct BarPart {
  std::string name;
  double value = 0;
  int color = 0;
};

/// Parts beside each other in a bar of length `whole`; each has a tooltip with its name and its value as `text`.
std::string stacked_bar(const std::vector<BarPart>& parts, double whole, std::string (*text)(double));

/// Charts beside each other where there is space.
std::string chart_grid(const std::vector<std::string>& figures);

/// A table that scrolls within itself where it is too wide. Cells are HTML; those of `numeric` columns are aligned right.
struct Table {
  std::vector<std::string> head{};
  std::vector<bool> numeric{};  ///< one per column; missing: false
  std::vector<std::vector<std::string>> rows{};
  std::string caption{};  ///< plain text

  std::string html() const;
};

}  // namespace gradring::train::page
