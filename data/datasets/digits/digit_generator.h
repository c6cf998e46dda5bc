// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/datasets/digits/canvas.h"
#include "data/datasets/digits/glyphs.h"

namespace gradring::data {

/// Writes digits like a person: picks a digit and a way to write it, bends, slants, turns, scales and shifts it, draws
/// it with a pen of random width, and adds noise.
///
/// Numerics  sample i is a pure function of (seed, i): the same bytes on every machine.
/// Threads   draw may be called from any thread.
class DigitGenerator {
 public:
  explicit DigitGenerator(std::uint64_t seed) : seed_(seed), glyphs_(all_glyphs()) {}

  /// Draws sample `index` into `pixels`, row after row; returns its label.
  int draw(std::uint64_t index, std::span<std::uint8_t, Canvas::kPixels> pixels) const;

 private:
  std::uint64_t seed_;
  std::vector<Glyph> glyphs_;
};

}  // namespace gradring::data
