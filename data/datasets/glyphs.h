// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

namespace gradring::data {

/// A pen position on a glyph's grid: 100 wide, 100 high, y downwards.
struct GlyphPoint {
  int x = 0, y = 0;
  bool operator==(const GlyphPoint&) const = default;
};

/// Points that a smooth curve passes through, in order.
using GlyphStroke = std::vector<GlyphPoint>;

/// One way to write one digit.
struct Glyph {
  int digit = 0;
  std::vector<GlyphStroke> strokes;
};

/// Parses "x,y x,y ...". A '/' after a point makes it a corner: one stroke ends and the next begins there. A '|' lifts
/// the pen.
///
/// Errors    InvalidArgument if the text has another form.
std::vector<GlyphStroke> parse_strokes(std::string_view text);

/// Every style of every digit, ordered by digit.
std::vector<Glyph> all_glyphs();

}  // namespace gradring::data
