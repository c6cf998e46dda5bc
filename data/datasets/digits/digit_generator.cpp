// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/digits/digit_generator.h"

#include <algorithm>

#include "data/datasets/digits/handwriting.h"
#include "data/datasets/digits/random_stream.h"

namespace gradring::data {
namespace {

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

}  // namespace

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

}  // namespace gradring::data
