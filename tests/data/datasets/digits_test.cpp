// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/digits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

#include "tests/data/support/linear_model.h"

namespace gradring::data {
namespace {

using CanvasImage = std::array<std::uint8_t, Canvas::kPixels>;

constexpr CanvasPoint at(int col, int row) { return {col * kPixel + kPixel / 2, row * kPixel + kPixel / 2}; }

CanvasImage render(const Canvas& canvas) {
  CanvasImage image{};
  canvas.render(image);
  return image;
}

int pixel(const CanvasImage& image, int col, int row) {
  return image[static_cast<std::size_t>(row * Canvas::kSide + col)];
}

TEST(Canvas, IsBlackWithoutALine) { EXPECT_EQ(render(Canvas({})), CanvasImage{}); }

TEST(Canvas, FadesOutOverThePensEdge) {
  Canvas canvas({.radius = kPixel, .edge = 2 * kPixel, .ink = 200});
  canvas.line(at(4, 10), at(20, 10));
  const CanvasImage image = render(canvas);
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
  EXPECT_EQ(render(canvas), CanvasImage{});
  canvas.line({-100 * kPixel, at(0, 14).y}, {100 * kPixel, at(0, 14).y});
  EXPECT_EQ(pixel(render(canvas), 0, 14), 255);
  EXPECT_EQ(pixel(render(canvas), 27, 14), 255);
}

TEST(Canvas, CurvesPassThroughTheirPoints) {
  Canvas canvas({.radius = kPixel, .edge = kPixel, .ink = 255});
  const std::array points = {at(4, 20), at(10, 6), at(18, 6), at(24, 20)};
  canvas.curve(points);
  const CanvasImage image = render(canvas);
  for (const CanvasPoint& point : points) EXPECT_EQ(pixel(image, point.x / kPixel, point.y / kPixel), 255);
  EXPECT_GT(pixel(image, 14, 4), 0) << "between two equally high points the curve goes over the top";
}

/// FNV-1a over every pixel and label.
std::uint64_t fingerprint(const Dataset& dataset) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  const auto add = [&](int byte) { hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ull; };
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    for (std::uint8_t pixel : dataset.pixels(i)) add(pixel);
    add(dataset.label(i));
  }
  return hash;
}

TEST(Digits, AreTheSameBytesOnEveryMachine) {
  EXPECT_EQ(fingerprint(*make_digits(Split::train)), 0x43aa1d65292aa79cull);
  EXPECT_EQ(fingerprint(*make_digits(Split::test)), 0x9dad15eb8c33d370ull);
}

TEST(Digits, LookLikeMnistFromOutside) {
  for (Split split : {Split::train, Split::test}) {
    const auto digits = make_digits(split);
    EXPECT_EQ(digits->name(), "digits");
    EXPECT_EQ(digits->size(), split == Split::train ? 10'000 : 2'000);
    EXPECT_EQ(digits->shape(), kernels::Shape({28, 28, 1}));
    EXPECT_EQ(digits->classes(), 10);
    std::array<int, 10> counts{};
    for (std::int64_t i = 0; i < digits->size(); ++i) ++counts.at(static_cast<std::size_t>(digits->label(i)));
    EXPECT_THAT(counts, ::testing::Each(::testing::Gt(digits->size() / 13)));
  }
}

TEST(Digits, EachSampleDependsOnItsSeedAndIndexAlone) {
  const auto draw = [](std::uint64_t seed, std::uint64_t index) {
    CanvasImage image{};
    DigitGenerator(seed).draw(index, image);
    return image;
  };
  EXPECT_EQ(draw(1, 5), draw(1, 5));
  EXPECT_NE(draw(1, 5), draw(2, 5));
  EXPECT_NE(draw(1, 5), draw(1, 6));
}

TEST(Digits, NoTestImageIsAmongTheTrainImages) {
  std::set<std::vector<std::uint8_t>> seen;
  for (Split split : {Split::train, Split::test}) {
    const auto digits = make_digits(split);
    for (std::int64_t i = 0; i < digits->size(); ++i) {
      const auto pixels = digits->pixels(i);
      EXPECT_TRUE(seen.emplace(pixels.begin(), pixels.end()).second) << name_of(split) << " " << i;
    }
  }
}

TEST(Digits, EveryImageShowsInkAndBackground) {
  const auto digits = make_digits(Split::test);
  for (std::int64_t i = 0; i < digits->size(); ++i) {
    int bright = 0;
    for (std::uint8_t pixel : digits->pixels(i)) bright += pixel > 100;
    EXPECT_GE(bright, 10) << i;
    EXPECT_LE(bright, 350) << i;
  }
}

class LinearModelOnDigits : public ::testing::TestWithParam<float> {};

TEST_P(LinearModelOnDigits, LearnsButStaysUnder95Percent) {
  const auto train = make_digits(Split::train), test = make_digits(Split::test);
  const tests::LinearSpec spec{.learning_rate = GetParam(), .seed = 3};
  const double accuracy = tests::best_linear_accuracy(*train, *test, spec);
  RecordProperty("accuracy", std::to_string(accuracy));
  std::printf("learning rate %g, seed %u: best test accuracy %.4f\n", static_cast<double>(spec.learning_rate),
              spec.seed, accuracy);
  EXPECT_LT(accuracy, 0.95);
  EXPECT_GT(accuracy, 0.5);
}

INSTANTIATE_TEST_SUITE_P(Rates, LinearModelOnDigits, ::testing::Values(0.001f, 0.005f));

}  // namespace
}  // namespace gradring::data
