// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::train {

enum class Glyphs : std::uint8_t { utf8, ascii };

/// The glyphs of this process's terminal: ascii if the locale (LC_ALL, LC_CTYPE, LANG) names another encoding than
/// UTF-8; utf8 if it names none.
Glyphs glyphs_of_locale();

/// The means of at most `parts` equal parts of the values, in their order: each of its finite values, NaN if it has none.
std::vector<double> part_means(std::span<const double> values, std::size_t parts);

/// Values as a curve of one line, between their minimum and maximum: "█▆▃▂▁▁". Each character is the mean of an equal
/// part of the values; "!" where none of them is finite.
///
/// Shapes    values: any number; result: min(width, number of values) characters, each one column wide.
std::string sparkline(std::span<const double> values, std::size_t width, Glyphs glyphs);

/// Columns that a UTF-8 text takes on a terminal, one for each code point.
std::size_t columns_of(std::string_view text);

/// The text and blanks, in at least `columns` columns.
std::string padded(std::string_view text, std::size_t columns, bool right_aligned = false);

/// At most `columns` columns of a text, without its end, or without its middle; what was cut is marked by "…" or "~".
/// Characters that a terminal obeys are escaped (printable), so that the text stays on its line.
std::string shortened(std::string_view text, std::size_t columns, Glyphs glyphs, bool in_the_middle = false);

struct TextColumn {
  std::string head{};
  bool right_aligned = false;
  std::size_t least = 0;    ///< columns to which it may be shortened; 0: never
  bool keeps_ends = false;  ///< is shortened in the middle, as names with a date
};

struct TextTable {
  /// Columns of texts, then columns of numbers, which are right-aligned; two blanks between them.
  static TextTable with(const std::vector<std::string>& texts, const std::vector<std::string>& numbers);

  std::vector<TextColumn> columns{};
  std::vector<std::vector<std::string>> rows{};
  std::size_t gap = 1;  ///< blanks between columns

  /// Lines with a line break each, the head first. Cells that are too wide for `width` columns in total are shortened;
  /// without a width none is.
  std::string text(std::optional<std::size_t> width = {}, Glyphs glyphs = Glyphs::ascii) const;
};

/// "31s", "2m31s", "1h05m", "3d02h"; "-" unless positive and finite.
std::string duration_text(double seconds);

/// A fraction in per cent without the sign: "98.25"; "-" if it is missing.
std::string percent_text(std::optional<double> fraction);

/// loss_text(double) (train/records/metrics/loss_text.h); "-" if there is none.
std::string loss_text(std::optional<double> loss);

}  // namespace gradring::train
