// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "data/datasets/dataset.h"

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

/// Canvas lengths are integers in 1/256 pixel, so that every machine draws the same image.
inline constexpr int kPixel = 256;

struct CanvasPoint {
  int x = 0, y = 0;
};

/// A round pen with a soft edge.
struct Pen {
  int radius = kPixel;  ///< to the middle of the edge
  int edge = kPixel;    ///< width over which the ink fades out
  int ink = 255;        ///< brightness at full ink
};

/// A square grey image to draw lines on. A pixel's value depends on its distance from the nearest line, so strokes that
/// cross or touch do not get brighter there.
///
/// Numerics  integers only, and a square root that IEEE 754 rounds exactly.
class Canvas {
 public:
  static constexpr int kSide = 28;
  static constexpr std::size_t kPixels = std::size_t{kSide} * kSide;

  explicit Canvas(Pen pen) : pen_(pen) { squared_distances_.fill(INT64_MAX); }

  void line(CanvasPoint from, CanvasPoint to);
  /// A Catmull-Rom spline through all `points` (at least two), drawn as short lines.
  void curve(std::span<const CanvasPoint> points);
  /// The image, row-major.
  void render(std::span<std::uint8_t, kPixels> pixels) const;

 private:
  int reach() const { return pen_.radius + pen_.edge / 2; }

  Pen pen_;
  std::array<std::int64_t, kPixels> squared_distances_;
};

/// Generates handwritten-looking digits: picks a digit and a style, bends, slants, rotates, scales and shifts it, draws
/// it with a pen of random width, and adds noise.
///
/// Numerics  sample i is a pure function of (seed, i): the same bytes on every machine.
/// Threads   draw may be called from any thread.
class DigitGenerator {
 public:
  explicit DigitGenerator(std::uint64_t seed) : seed_(seed), glyphs_(all_glyphs()) {}

  /// Draws sample `index` into `pixels`, row-major; returns its label.
  int draw(std::uint64_t index, std::span<std::uint8_t, Canvas::kPixels> pixels) const;

 private:
  std::uint64_t seed_;
  std::vector<Glyph> glyphs_;
};

inline constexpr std::int64_t kDigitsTrainSamples = 10'000;
inline constexpr std::int64_t kDigitsTestSamples = 2'000;

/// The dataset `digits`: 28 x 28 grey images, generated, without files or licence. Easy for a ConvNet, too hard for a
/// linear model.
///
/// Cost      draws the whole split.
/// Example   tests/data/datasets/digits_test.cpp
std::unique_ptr<Dataset> make_digits(Split split);

}  // namespace gradring::data
