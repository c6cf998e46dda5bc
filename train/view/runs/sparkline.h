// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace gradring::train {

enum class Glyphs : std::uint8_t { utf8, ascii };

/// The glyphs of this process's terminal: ascii if the locale (LC_ALL, LC_CTYPE, LANG) names another encoding than
/// UTF-8; utf8 if it names none.
Glyphs glyphs_of_locale();

/// Values as a curve of one line, between their minimum and maximum: "█▆▃▂▁▁". Each character is the mean of an equal
/// part of the values; "!" where none of them is finite.
///
/// Shapes    values: any number; result: min(width, number of values) characters, each one column wide.
std::string sparkline(std::span<const double> values, std::size_t width, Glyphs glyphs);

}  // namespace gradring::train
