// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace gradring::data {

/// Lengths and positions on a canvas are whole numbers of 1/256 pixel, so that every machine draws the same image.
inline constexpr int kPixel = 256;

struct CanvasPoint {
  int x = 0, y = 0;
};

/// A round pen with a soft edge.
struct Pen {
  int radius = kPixel;  ///< to the middle of the edge
  int edge = kPixel;    ///< width over which the ink fades out
  int ink = 255;        ///< brightness where the ink is full
};

/// A square grey image on which lines are drawn. What counts for a pixel is its distance from the nearest line, so that
/// strokes that cross or touch do not get brighter there.
///
/// Numerics  integers alone, and a square root that IEEE 754 rounds exactly.
class Canvas {
 public:
  static constexpr int kSide = 28;
  static constexpr std::size_t kPixels = std::size_t{kSide} * kSide;

  explicit Canvas(Pen pen) : pen_(pen) { squared_distances_.fill(kFar); }

  void line(CanvasPoint from, CanvasPoint to);
  /// A Catmull-Rom spline through all `points`, drawn as short lines. Two points at least.
  void curve(std::span<const CanvasPoint> points);
  /// The image, row after row.
  void render(std::span<std::uint8_t, kPixels> pixels) const;

 private:
  static constexpr std::int64_t kFar = INT64_MAX;
  int reach() const { return pen_.radius + pen_.edge / 2; }

  Pen pen_;
  std::array<std::int64_t, kPixels> squared_distances_;
};

}  // namespace gradring::data
