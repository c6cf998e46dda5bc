// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/digits.h"

#include <gmock/gmock.h>

#include <array>

#include "kernels/base/error.h"

namespace gradring::data {
namespace {

using ::testing::ElementsAre;

TEST(Glyphs, ParsesCurvesCornersAndLifts) {
  EXPECT_THAT(parse_strokes("1,2 3,4 5,6"),
              ElementsAre(ElementsAre(GlyphPoint{1, 2}, GlyphPoint{3, 4}, GlyphPoint{5, 6})));
  EXPECT_THAT(parse_strokes("1,2 3,4/ 5,6"), ElementsAre(ElementsAre(GlyphPoint{1, 2}, GlyphPoint{3, 4}),
                                                         ElementsAre(GlyphPoint{3, 4}, GlyphPoint{5, 6})));
  EXPECT_THAT(parse_strokes("1,2 3,4 | 5,6 7,8"), ElementsAre(ElementsAre(GlyphPoint{1, 2}, GlyphPoint{3, 4}),
                                                              ElementsAre(GlyphPoint{5, 6}, GlyphPoint{7, 8})));
}

TEST(Glyphs, RejectsWhatIsNoGlyph) {
  for (const char* text : {"", "1,2", "1,2 3", "1,2 3;4", "a,b c,d", "1,2 3,4 |", "1,2 3,4/", "| 1,2 3,4"})
    EXPECT_THROW(parse_strokes(text), InvalidArgument) << text;
}

TEST(Glyphs, HasSeveralStylesOfEveryDigitOnTheGrid) {
  std::array<int, 10> styles{};
  for (const Glyph& glyph : all_glyphs()) {
    ++styles.at(static_cast<std::size_t>(glyph.digit));
    for (const GlyphStroke& stroke : glyph.strokes)
      for (const GlyphPoint& point : stroke) {
        EXPECT_TRUE(point.x >= 0 && point.x <= 100 && point.y >= 0 && point.y <= 100)
            << "digit " << glyph.digit << " at " << point.x << "," << point.y;
      }
  }
  EXPECT_THAT(styles, ::testing::Each(3));
}

}  // namespace
}  // namespace gradring::data
