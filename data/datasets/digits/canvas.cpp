// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/digits/canvas.h"

#include <algorithm>
#include <cmath>

namespace gradring::data {
namespace {

constexpr int kLinesPerSpan = 6;

std::int64_t squared_distance(CanvasPoint p, CanvasPoint a, CanvasPoint b) {
  const std::int64_t abx = b.x - a.x, aby = b.y - a.y, apx = p.x - a.x, apy = p.y - a.y;
  const std::int64_t length2 = abx * abx + aby * aby;
  const std::int64_t along = apx * abx + apy * aby;  // times the length: where p projects onto the line
  if (along <= 0) return apx * apx + apy * apy;
  if (along >= length2) return (p.x - b.x) * std::int64_t{p.x - b.x} + (p.y - b.y) * std::int64_t{p.y - b.y};
  const std::int64_t cross = apx * aby - apy * abx;
  return cross * cross / length2;
}

/// Catmull-Rom between p1 and p2 in one coordinate, at step/kLinesPerSpan of the way.
int spline(std::int64_t p0, std::int64_t p1, std::int64_t p2, std::int64_t p3, std::int64_t step) {
  constexpr std::int64_t n = kLinesPerSpan;
  const std::int64_t scaled = 2 * p1 * n * n * n + (p2 - p0) * step * n * n +
                              (2 * p0 - 5 * p1 + 4 * p2 - p3) * step * step * n +
                              (3 * p1 - p0 - 3 * p2 + p3) * step * step * step;
  return static_cast<int>(scaled / (2 * n * n * n));
}

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
    const CanvasPoint p0 = i > 0 ? points[i - 1] : p1;  // at the ends the curve has no memory
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

}  // namespace gradring::data
