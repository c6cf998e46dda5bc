// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/digits/handwriting.h"

namespace gradring::data {
namespace {

constexpr int kUnit = 16;            // bends are given in 1/16 of a glyph unit
constexpr std::int64_t kOne = 4096;  // 1.0 as a fraction
constexpr int kGlyphMiddle = 50;

/// `percent` of 1.0.
constexpr int percent(int value) { return static_cast<int>(kOne * value / 100); }

}  // namespace

Handwriting::Handwriting(RandomStream& random) {
  for (Lattice* lattice : {&bend_x_, &bend_y_})
    for (auto& row : *lattice)
      for (int& node : row) node = random.between(-7 * kUnit, 7 * kUnit);

  const std::int64_t width = random.between(percent(60), percent(105));
  const std::int64_t height = random.between(percent(75), percent(110));
  const std::int64_t slant =
      random.between(percent(-45), percent(25));  // people lean to the right: negative, y is down
  const std::int64_t half_turn = random.between(percent(-12), percent(12));  // tangent of half the angle

  // Sine and cosine without a sine: both are rational in the tangent of half the angle.
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

CanvasPoint Handwriting::place(GlyphPoint point) const {
  const std::int64_t x = (point.x - kGlyphMiddle) * kUnit + bend(bend_x_, point);
  const std::int64_t y = (point.y - kGlyphMiddle) * kUnit + bend(bend_y_, point);
  return {center_.x + static_cast<int>((xx_ * x + xy_ * y) / (kOne * kUnit)),
          center_.y + static_cast<int>((yx_ * x + yy_ * y) / (kOne * kUnit))};
}

int Handwriting::bend(const Lattice& lattice, GlyphPoint point) {
  const auto col = static_cast<std::size_t>(point.x / kSpacing), row = static_cast<std::size_t>(point.y / kSpacing);
  const int right = point.x % kSpacing, down = point.y % kSpacing;
  const int top = lattice[row][col] * (kSpacing - right) + lattice[row][col + 1] * right;
  const int bottom = lattice[row + 1][col] * (kSpacing - right) + lattice[row + 1][col + 1] * right;
  return (top * (kSpacing - down) + bottom * down) / (kSpacing * kSpacing);
}

}  // namespace gradring::data
