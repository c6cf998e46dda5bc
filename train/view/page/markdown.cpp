// SPDX-License-Identifier: Apache-2.0
#include "train/view/page/markdown.h"

#include <algorithm>

#include "kernels/base/printable.h"

namespace gradring::train::markdown {
namespace {

/// Line breaks and tabs become blanks, other characters that are obeyed are escaped.
std::string on_one_line(std::string_view text) {
  std::string line = printable(text, "\n\r\t");
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return line;
}

std::size_t longest_run(std::string_view text, char c) {
  std::size_t longest = 0, run = 0;
  for (const char each : text) longest = std::max(longest, run = each == c ? run + 1 : 0);
  return longest;
}

/// A bar ends a cell, even in code.
std::string with_escaped_bars(const std::string& cell) {
  std::string escaped;
  for (const char c : cell) {
    if (c == '|' && !escaped.ends_with('\\')) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string row_of(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) row += " " + with_escaped_bars(cell) + " |";
  return row + "\n";
}

}  // namespace

std::string plain(std::string_view text) {
  constexpr std::string_view kSpecial = "\\`*_[]<>|#&!~$";
  std::string escaped;
  for (const char c : on_one_line(text)) {
    if (kSpecial.find(c) != kSpecial.npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string code(std::string_view text) {
  const std::string line = on_one_line(text);
  const std::string fence(longest_run(line, '`') + 1, '`');
  const char* const space = fence.size() > 1 ? " " : "";
  return fence + space + line + space + fence;
}

std::string table(std::span<const std::vector<std::string>> rows) {
  if (rows.empty()) return {};
  std::string text = row_of(rows.front()) + row_of(std::vector<std::string>(rows.front().size(), "---"));
  for (const auto& row : rows.subspan(1)) text += row_of(row);
  return text;
}

}  // namespace gradring::train::markdown
