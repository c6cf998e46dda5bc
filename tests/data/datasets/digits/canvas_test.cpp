// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/digits/canvas.h"

#include <gtest/gtest.h>

namespace gradring::data {
namespace {

using Image = std::array<std::uint8_t, Canvas::kPixels>;

constexpr CanvasPoint at(int col, int row) { return {col * kPixel + kPixel / 2, row * kPixel + kPixel / 2}; }

Image render(const Canvas& canvas) {
  Image image{};
  canvas.render(image);
  return image;
}

int pixel(const Image& image, int col, int row) { return image[static_cast<std::size_t>(row * Canvas::kSide + col)]; }

TEST(Canvas, IsBlackWithoutALine) { EXPECT_EQ(render(Canvas({})), Image{}); }

TEST(Canvas, FadesOutOverThePensEdge) {
  Canvas canvas({.radius = kPixel, .edge = 2 * kPixel, .ink = 200});
  canvas.line(at(4, 10), at(20, 10));
  const Image image = render(canvas);
  EXPECT_EQ(pixel(image, 12, 10), 200);
  EXPECT_EQ(pixel(image, 12, 11), 100);  // one pixel away: the middle of the edge
  EXPECT_EQ(pixel(image, 12, 9), 100);
  EXPECT_EQ(pixel(image, 12, 12), 0);
  EXPECT_EQ(pixel(image, 21, 10), 100);  // past the end: the pen is round
  EXPECT_EQ(pixel(image, 22, 10), 0);
}

TEST(Canvas, DrawsAPoint) {
  Canvas canvas({.radius = kPixel, .edge = kPixel, .ink = 255});
  canvas.line(at(3, 3), at(3, 3));
  EXPECT_EQ(pixel(render(canvas), 3, 3), 255);
}

TEST(Canvas, DrawsNothingTwiceAsBright) {
  Canvas once({}), twice({});
  once.line(at(3, 3), at(20, 24));
  twice.line(at(3, 3), at(20, 24));
  twice.line(at(20, 24), at(3, 3));
  EXPECT_EQ(render(once), render(twice));
}

TEST(Canvas, CutsWhatLeavesTheImage) {
  Canvas canvas({});
  canvas.line({-100 * kPixel, -100 * kPixel}, {-50 * kPixel, 100 * kPixel});
  EXPECT_EQ(render(canvas), Image{});
  canvas.line({-100 * kPixel, at(0, 14).y}, {100 * kPixel, at(0, 14).y});
  EXPECT_EQ(pixel(render(canvas), 0, 14), 255);
  EXPECT_EQ(pixel(render(canvas), 27, 14), 255);
}

TEST(Canvas, CurvesPassThroughTheirPoints) {
  Canvas canvas({.radius = kPixel, .edge = kPixel, .ink = 255});
  const std::array points = {at(4, 20), at(10, 6), at(18, 6), at(24, 20)};
  canvas.curve(points);
  const Image image = render(canvas);
  for (const CanvasPoint& point : points) EXPECT_EQ(pixel(image, point.x / kPixel, point.y / kPixel), 255);
  EXPECT_GT(pixel(image, 14, 4), 0) << "between two equally high points the curve goes over the top";
}

}  // namespace
}  // namespace gradring::data
