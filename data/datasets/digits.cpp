// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/digits.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "data/datasets/dataset.h"

#include "kernels/runtime/philox.h"

namespace gradring::data {
namespace {

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

  CanvasPoint place(GlyphPoint point) const {
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
    for (const GlyphPoint& point : stroke) curve.push_back(hand.place(point));
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
                                     .labels = std::vector<std::uint8_t>(samples)};
  for (std::size_t i = 0; i < samples; ++i) {
    const std::span<std::uint8_t, Canvas::kPixels> pixels(contents.pixels.data() + i * Canvas::kPixels,
                                                          Canvas::kPixels);
    contents.labels[i] = static_cast<std::uint8_t>(generator.draw(i, pixels));
  }
  return std::make_unique<InMemoryDataset>(std::move(contents));
}

}  // namespace gradring::data
