// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/glyphs.h"

#include <array>
#include <charconv>
#include <string>

#include "kernels/runtime/error.h"

namespace gradring::data {
namespace {

struct Style {
  int digit;
  std::string_view strokes;
};

constexpr std::array kStyles = {
    // round; narrow and open at the top; begun on the right with a small overlap
    Style{0, "52,4 26,18 16,50 26,84 50,97 76,82 85,50 76,18 52,4"},
    Style{0, "58,6 36,14 26,46 32,86 50,96 68,84 74,48 66,14 50,5"},
    Style{0, "72,16 48,4 24,24 16,58 30,90 56,96 80,74 84,40 70,14 56,8"},
    // a bare stroke; with a flag; with a flag and a foot
    Style{1, "50,3 50,97"},
    Style{1, "30,24 52,4/ 52,97"},
    Style{1, "32,22 50,5/ 50,95 | 28,96 72,96"},
    // plain; with a loop at the foot; with a corner at the foot
    Style{2, "20,26 34,8 58,4 78,18 76,40 52,66 18,94/ 84,94"},
    Style{2, "22,22 44,4 70,12 74,36 52,68 26,90 18,82 34,76 56,90 84,92"},
    Style{2, "18,20 50,5 80,20 70,48 40,74 20,95/ 50,90 84,95"},
    // two bows; a flat top; a loop between the bows
    Style{3, "20,14 48,4 76,18 70,38 42,48/ 74,58 80,78 56,96 18,88"},
    Style{3, "20,6 78,6/ 46,40/ 76,54 80,78 54,96 18,86"},
    Style{3, "22,16 50,4 72,20 58,42 40,48 50,52 72,56 78,78 54,96 20,86"},
    // open; closed; open with a curved bowl
    Style{4, "30,6 18,58/ 84,58 | 68,10 64,97"},
    Style{4, "66,97 66,4/ 14,66/ 88,66"},
    Style{4, "24,8 20,40 36,54 70,48 | 76,6 70,50 66,97"},
    // roof last; in one go; round like an S
    Style{5, "28,8 24,46/ 54,38 80,58 74,86 46,96 18,86 | 28,8 80,8"},
    Style{5, "80,6 30,8/ 26,44/ 58,40 80,62 68,90 40,96 18,84"},
    Style{5, "78,8 46,6 28,22 40,42 68,52 80,74 60,94 20,90"},
    // a straight back; a curved back; a small bowl
    Style{6, "64,4 34,32 18,66 30,92 58,97 80,78 70,56 42,54 22,72"},
    Style{6, "76,12 50,6 26,34 18,70 36,95 66,93 80,72 64,52 38,56 20,76"},
    Style{6, "46,3 28,40 22,78 44,97 70,84 64,64 40,64 24,82"},
    // plain; with a bar; with a serif and a curved leg
    Style{7, "18,8 82,8/ 42,97"},
    Style{7, "18,10 82,8/ 40,97 | 34,52 72,50"},
    Style{7, "18,22 20,8/ 80,10/ 58,44 48,97"},
    // one line, crossing; two rings; one line from the right
    Style{8, "70,16 44,4 24,20 46,44 76,68 66,94 36,94 24,72 52,46 76,22 66,10"},
    Style{8, "50,4 28,16 32,40 50,48 70,38 72,16 50,4 | 50,48 24,62 22,86 50,97 78,86 76,62 50,48"},
    Style{8, "78,10 50,4 28,20 44,42 70,62 64,92 38,95 26,74 46,52 78,12"},
    // a straight leg; a curved leg; a hook
    Style{9, "76,26 54,5 26,16 24,42 48,52 74,34/ 76,14/ 70,97"},
    Style{9, "78,20 50,4 24,22 30,48 58,50 78,26 76,60 58,97"},
    Style{9, "74,30 58,6 30,10 22,36 44,52 72,36/ 78,10/ 78,62 62,92 28,92"},
};

int parse_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc(), "a glyph has no number at '" + std::string(text) + "'");
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool skip(std::string_view& text, char character) {
  if (!text.starts_with(character)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::vector<GlyphStroke> parse_strokes(std::string_view text) {
  std::vector<GlyphStroke> strokes(1);
  while (!text.empty()) {
    if (skip(text, ' ')) continue;
    if (skip(text, '|')) {
      strokes.emplace_back();
      continue;
    }
    GlyphPoint point;
    point.x = parse_number(text);
    check(skip(text, ','), "a glyph has no ',' at '" + std::string(text) + "'");
    point.y = parse_number(text);
    strokes.back().push_back(point);
    if (skip(text, '/')) strokes.push_back({point});
  }
  for (const GlyphStroke& stroke : strokes) check(stroke.size() >= 2, "a stroke of a glyph has fewer than two points");
  return strokes;
}

std::vector<Glyph> all_glyphs() {
  std::vector<Glyph> glyphs;
  for (const Style& style : kStyles) glyphs.push_back({style.digit, parse_strokes(style.strokes)});
  return glyphs;
}

}  // namespace gradring::data
