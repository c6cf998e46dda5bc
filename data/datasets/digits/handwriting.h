// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "data/datasets/digits/canvas.h"
#include "data/datasets/digits/glyphs.h"
#include "data/datasets/digits/random_stream.h"

namespace gradring::data {

/// How one digit is written this time: a map from the glyph's grid to the canvas, made of a smooth random bend, then
/// scale, slant, turn and shift.
///
/// Numerics  integers alone; fractions have 12 binary digits.
class Handwriting {
 public:
  explicit Handwriting(RandomStream& random);

  CanvasPoint place(GlyphPoint point) const;

 private:
  /// The bend is given at the nodes of a coarse lattice over the glyph, and linear in between.
  static constexpr int kSpacing = 32;  ///< glyph units between nodes
  static constexpr int kNodes = 5;     ///< in each direction: 0, 32, ..., 128
  using Lattice = std::array<std::array<int, kNodes>, kNodes>;

  static int bend(const Lattice& lattice, GlyphPoint point);

  Lattice bend_x_{}, bend_y_{};                     ///< in 1/kUnit glyph units
  std::int64_t xx_ = 0, xy_ = 0, yx_ = 0, yy_ = 0;  ///< the linear part, glyph units to canvas units
  CanvasPoint center_;                              ///< where the middle of the glyph's grid comes to lie
};

}  // namespace gradring::data
