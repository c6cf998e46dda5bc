// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/digits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "data/datasets/dataset.h"
#include "kernels/base/error.h"
#include "kernels/runtime/philox.h"

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

constexpr int kLinesPerSpan = 6;

std::int64_t squared_distance(CanvasPoint p, CanvasPoint a, CanvasPoint b) {
  const std::int64_t abx = b.x - a.x, aby = b.y - a.y, apx = p.x - a.x, apy = p.y - a.y;
  const std::int64_t length2 = abx * abx + aby * aby;
  const std::int64_t along = apx * abx + apy * aby;  // projection onto the line, times its length
  if (along <= 0) return apx * apx + apy * apy;
  if (along >= length2) return (p.x - b.x) * std::int64_t{p.x - b.x} + (p.y - b.y) * std::int64_t{p.y - b.y};
  const std::int64_t cross = apx * aby - apy * abx;
  return cross * cross / length2;
}

/// Catmull-Rom between p1 and p2 in one coordinate, at step / kLinesPerSpan.
int spline(std::int64_t p0, std::int64_t p1, std::int64_t p2, std::int64_t p3, std::int64_t step) {
  constexpr std::int64_t n = kLinesPerSpan;
  const std::int64_t scaled = 2 * p1 * n * n * n + (p2 - p0) * step * n * n +
                              (2 * p0 - 5 * p1 + 4 * p2 - p3) * step * step * n +
                              (3 * p1 - p0 - 3 * p2 + p3) * step * step * step;
  return static_cast<int>(scaled / (2 * n * n * n));
}

/// The random numbers of one sample: a pure function of (seed, index) and of how many were drawn before.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t index) : seed_(seed), index_(index) {}

  std::uint32_t word() {
    if (used_ == 4) {
      words_ = kernels::philox(seed_, block_++, index_);
      used_ = 0;
    }
    return words_[used_++];
  }

  /// Uniform in low .. high, both included.
  int between(int low, int high) {
    const auto count = static_cast<std::uint64_t>(high - low + 1);
    return low + static_cast<int>(count * word() >> 32);
  }

 private:
  std::uint64_t seed_, index_, block_ = 0;
  std::array<std::uint32_t, 4> words_{};
  unsigned used_ = 4;
};

/// A random map from a glyph's grid to the canvas: a smooth bend, then scale, slant, rotation and shift. In integers;
/// fractions have 12 binary digits.
class Handwriting {
 public:
  explicit Handwriting(RandomStream& random) {
    for (Lattice* lattice : {&bend_x_, &bend_y_})
      for (auto& row : *lattice)
        for (int& node : row) node = random.between(-7 * kUnit, 7 * kUnit);

    const std::int64_t width = random.between(percent(60), percent(105));
    const std::int64_t height = random.between(percent(75), percent(110));
    const std::int64_t slant = random.between(percent(-45), percent(25));      // negative leans right: y is down
    const std::int64_t half_turn = random.between(percent(-12), percent(12));  // tangent of half the angle

    // Sine and cosine as rational functions of the tangent of half the angle.
    const std::int64_t denominator = kOne * kOne + half_turn * half_turn;
    const std::int64_t cosine = kOne * (kOne * kOne - half_turn * half_turn) / denominator;
    const std::int64_t sine = kOne * (2 * kOne * half_turn) / denominator;

    // turn * slant * scale, where slant adds slant * y to x, and 100 glyph units are 20 pixels.
    constexpr std::int64_t kCanvasPerGlyph = 20 * kPixel / 100;
    xx_ = kCanvasPerGlyph * cosine * width / kOne;
    yx_ = kCanvasPerGlyph * sine * width / kOne;
    xy_ = kCanvasPerGlyph * (cosine * slant / kOne - sine) * height / kOne;
    yy_ = kCanvasPerGlyph * (sine * slant / kOne + cosine) * height / kOne;

    constexpr int kMiddle = Canvas::kSide * kPixel / 2;
    constexpr int kShift = 5 * kPixel / 2;
    center_.x = kMiddle + random.between(-kShift, kShift);
    center_.y = kMiddle + random.between(-kShift, kShift);
  }

  CanvasPoint on_canvas(GlyphPoint point) const {
    const std::int64_t x = (point.x - kGlyphMiddle) * kUnit + bend(bend_x_, point);
    const std::int64_t y = (point.y - kGlyphMiddle) * kUnit + bend(bend_y_, point);
    return {center_.x + static_cast<int>((xx_ * x + xy_ * y) / (kOne * kUnit)),
            center_.y + static_cast<int>((yx_ * x + yy_ * y) / (kOne * kUnit))};
  }

 private:
  static constexpr int kUnit = 16;            // bends are in 1/16 of a glyph unit
  static constexpr std::int64_t kOne = 4096;  // 1.0 as a fraction
  static constexpr int kGlyphMiddle = 50;
  // The bend is given at the nodes of a coarse lattice over the glyph and linear in between.
  static constexpr int kSpacing = 32;  // glyph units between nodes
  static constexpr int kNodes = 5;     // in each direction: 0, 32, ..., 128
  using Lattice = std::array<std::array<int, kNodes>, kNodes>;

  static constexpr int percent(int value) { return static_cast<int>(kOne * value / 100); }

  static int bend(const Lattice& lattice, GlyphPoint point) {
    const auto col = static_cast<std::size_t>(point.x / kSpacing), row = static_cast<std::size_t>(point.y / kSpacing);
    const int right = point.x % kSpacing, down = point.y % kSpacing;
    const int top = lattice[row][col] * (kSpacing - right) + lattice[row][col + 1] * right;
    const int bottom = lattice[row + 1][col] * (kSpacing - right) + lattice[row + 1][col + 1] * right;
    return (top * (kSpacing - down) + bottom * down) / (kSpacing * kSpacing);
  }

  Lattice bend_x_{}, bend_y_{};                     // in 1/kUnit glyph units
  std::int64_t xx_ = 0, xy_ = 0, yx_ = 0, yy_ = 0;  // the linear part, glyph units to canvas units
  CanvasPoint center_;                              // image of the grid's middle
};

Pen random_pen(RandomStream& random) {
  return {.radius = random.between(kPixel * 6 / 10, kPixel * 18 / 10),
          .edge = random.between(kPixel * 8 / 10, kPixel * 16 / 10),
          .ink = random.between(150, 255)};
}

/// Adds to each pixel a number from -amplitude to amplitude.
void add_noise(std::span<std::uint8_t> pixels, RandomStream& random) {
  const int amplitude = random.between(0, 48);
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    word = i % 4 == 0 ? random.word() : word >> 8;
    const int noise = (static_cast<int>(word & 255u) - 128) * amplitude / 128;
    pixels[i] = static_cast<std::uint8_t>(std::clamp(pixels[i] + noise, 0, 255));
  }
}

constexpr std::uint64_t kTrainSeed = 0x7261696e;
constexpr std::uint64_t kTestSeed = 0x74657374;

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

void Canvas::line(CanvasPoint from, CanvasPoint to) {
  const auto first = [&](int a, int b) { return std::max(0, (std::min(a, b) - reach()) / kPixel); };
  const auto last = [&](int a, int b) { return std::min(kSide - 1, (std::max(a, b) + reach()) / kPixel); };
  for (int row = first(from.y, to.y); row <= last(from.y, to.y); ++row)
    for (int col = first(from.x, to.x); col <= last(from.x, to.x); ++col) {
      const CanvasPoint center{col * kPixel + kPixel / 2, row * kPixel + kPixel / 2};
      std::int64_t& nearest = squared_distances_[static_cast<std::size_t>(row * kSide + col)];
      nearest = std::min(nearest, squared_distance(center, from, to));
    }
}

void Canvas::curve(std::span<const CanvasPoint> points) {
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const CanvasPoint p1 = points[i], p2 = points[i + 1];
    const CanvasPoint p0 = i > 0 ? points[i - 1] : p1;  // end points are repeated
    const CanvasPoint p3 = i + 2 < points.size() ? points[i + 2] : p2;
    CanvasPoint from = p1;
    for (int step = 1; step <= kLinesPerSpan; ++step) {
      const CanvasPoint to{spline(p0.x, p1.x, p2.x, p3.x, step), spline(p0.y, p1.y, p2.y, p3.y, step)};
      line(from, to);
      from = to;
    }
  }
}

void Canvas::render(std::span<std::uint8_t, kPixels> pixels) const {
  const std::int64_t reach2 = std::int64_t{reach()} * reach();
  for (std::size_t i = 0; i < kPixels; ++i) {
    int covered = 0;  // of pen_.edge
    if (squared_distances_[i] < reach2) {
      const int distance = static_cast<int>(std::sqrt(static_cast<double>(squared_distances_[i])));
      covered = std::clamp(reach() - distance, 0, pen_.edge);
    }
    pixels[i] = static_cast<std::uint8_t>(pen_.ink * covered / pen_.edge);
  }
}

int DigitGenerator::draw(std::uint64_t index, std::span<std::uint8_t, Canvas::kPixels> pixels) const {
  RandomStream random(seed_, index);
  const Glyph& glyph = glyphs_[static_cast<std::size_t>(random.between(0, static_cast<int>(glyphs_.size()) - 1))];
  const Handwriting hand(random);
  Canvas canvas(random_pen(random));
  std::vector<CanvasPoint> curve;
  for (const GlyphStroke& stroke : glyph.strokes) {
    curve.clear();
    for (const GlyphPoint& point : stroke) curve.push_back(hand.on_canvas(point));
    canvas.curve(curve);
  }
  canvas.render(pixels);
  add_noise(pixels, random);
  return glyph.digit;
}

std::unique_ptr<Dataset> make_digits(Split split) {
  const DigitGenerator generator(split == Split::train ? kTrainSeed : kTestSeed);
  const auto samples = static_cast<std::size_t>(split == Split::train ? kDigitsTrainSamples : kDigitsTestSamples);
  InMemoryDataset::Contents contents{.name = "digits",
                                     .shape = {Canvas::kSide, Canvas::kSide, 1},
                                     .classes = 10,
                                     .pixels = std::vector<std::uint8_t>(samples * Canvas::kPixels),
                                     .labels = std::vector<std::int32_t>(samples)};
  for (std::size_t i = 0; i < samples; ++i) {
    const std::span<std::uint8_t, Canvas::kPixels> pixels(contents.pixels.data() + i * Canvas::kPixels,
                                                          Canvas::kPixels);
    contents.labels[i] = generator.draw(i, pixels);
  }
  return std::make_unique<InMemoryDataset>(std::move(contents));
}

}  // namespace gradring::data
