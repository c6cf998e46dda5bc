// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/gather_batch/draws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace gradring::kernels::gather_batch {
namespace {

constexpr std::uint64_t kSeed = 42;
constexpr int kSamples = 6000;

/// The rows, or columns, that a padded one is made of, as torch.nn.functional.pad(mode="reflect") makes it.
std::vector<int> padded(int size, int pad) {
  std::vector<int> rows;
  for (int i = pad; i > 0; --i) rows.push_back(i);
  for (int i = 0; i < size; ++i) rows.push_back(i);
  for (int i = 1; i <= pad; ++i) rows.push_back(size - 1 - i);
  return rows;
}

/// Within five standard deviations of `draws` fair draws of a number in [0, counts.size()).
void expect_uniform(const std::vector<int>& counts, int draws) {
  const double p = 1.0 / static_cast<double>(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double deviation = counts[i] - draws * p;
    EXPECT_LT(deviation * deviation, 25 * draws * p * (1 - p)) << i << " was drawn " << counts[i] << " times";
  }
}

TEST(Draws, CropIsAWindowOfTheReflectedImage) {
  constexpr int kHeight = 5, kWidth = 8, kPad = 3;
  const std::vector<int> rows = padded(kHeight, kPad), cols = padded(kWidth, kPad);
  for (int sample = 0; sample < 200; ++sample) {
    const Draw draw = draw_of({.crop = kPad}, kSeed, 1, sample, kHeight, kWidth);
    EXPECT_FALSE(draw.flip);
    for (int y = 0; y < kHeight; ++y)
      EXPECT_EQ(draw.row_of(y, kHeight), rows.at(static_cast<std::size_t>(y + draw.shift_y + kPad)));
    for (int x = 0; x < kWidth; ++x)
      EXPECT_EQ(draw.col_of(x, kWidth), cols.at(static_cast<std::size_t>(x + draw.shift_x + kPad)));
  }
}

/// As torchvision.transforms.Compose([RandomCrop, RandomHorizontalFlip]) does it.
TEST(Draws, FlipMirrorsTheCrop) {
  constexpr int kSize = 9;
  int flipped = 0;
  for (int sample = 0; sample < 100; ++sample) {
    Draw draw = draw_of({.flip = Flip::random, .crop = 4}, kSeed, 1, sample, kSize, kSize);
    if (!draw.flip) continue;
    ++flipped;
    Draw crop = draw;
    crop.flip = false;
    for (int x = 0; x < kSize; ++x) EXPECT_EQ(draw.col_of(x, kSize), crop.col_of(kSize - 1 - x, kSize));
  }
  EXPECT_GT(flipped, 20);
}

TEST(Draws, FlipsAndShiftsAreUniform) {
  std::vector<int> flips(2), rows(9), cols(9);
  for (int sample = 0; sample < kSamples; ++sample) {
    const Draw draw = draw_of({.flip = Flip::random, .crop = 4}, kSeed, 3, sample, 32, 32);
    ++flips.at(draw.flip);
    ++rows.at(static_cast<std::size_t>(draw.shift_y + 4));
    ++cols.at(static_cast<std::size_t>(draw.shift_x + 4));
  }
  expect_uniform(flips, kSamples);
  expect_uniform(rows, kSamples);
  expect_uniform(cols, kSamples);
}

/// An image that was seen one way in an epoch is seen the other way in the next.
TEST(Draws, AlternatingFlipTakesTurns) {
  std::vector<int> flips(2);
  for (int sample = 0; sample < kSamples; ++sample) {
    const auto flip = [&](std::int64_t epoch) {
      return draw_of({.flip = Flip::alternating}, kSeed, epoch, sample, 32, 32).flip;
    };
    for (std::int64_t epoch = 0; epoch < 6; ++epoch) EXPECT_EQ(flip(epoch), flip(0) != (epoch % 2 == 1));
    ++flips.at(flip(0));
  }
  expect_uniform(flips, kSamples);
}

/// A balanced sampler visits a sample several times in an epoch.
TEST(Draws, EachVisitOfASampleHasItsOwn) {
  std::vector<int> flips(2);
  std::set<std::tuple<bool, int, int, int, int>> seen;
  constexpr int kVisits = 100;
  for (std::int64_t earlier = 0; earlier < kVisits; ++earlier) {
    const std::int64_t visit = visit_of(7, earlier);
    EXPECT_EQ(sample_of(visit), 7);
    EXPECT_EQ(earlier_visits_of(visit), earlier);
    const Draw draw = draw_of({.flip = Flip::random, .crop = 4, .cutout = 6}, kSeed, 1, visit, 32, 32);
    ++flips.at(draw.flip);
    seen.insert({draw.flip, draw.shift_y, draw.shift_x, draw.cut_top, draw.cut_left});
    const auto alternating = [&](std::int64_t of) {
      return draw_of({.flip = Flip::alternating}, kSeed, 1, of, 32, 32).flip;
    };
    EXPECT_EQ(alternating(visit), alternating(7) != (earlier % 2 == 1));
  }
  expect_uniform(flips, kVisits);
  EXPECT_GT(seen.size(), 95u);
}

/// DeVries and Taylor's Cutout(n_holes=1, length): a square about a pixel of the image, clipped to it.
TEST(Draws, CutoutIsASquareClippedToTheImage) {
  constexpr int kHeight = 7, kWidth = 10;
  for (int side : {1, 2, 4, 5, 20}) {
    std::vector<int> rows(kHeight), cols(kWidth);
    for (int sample = 0; sample < kSamples; ++sample) {
      const Draw draw = draw_of({.cutout = side}, kSeed, 2, sample, kHeight, kWidth);
      const auto words = philox(kSeed, static_cast<std::uint64_t>(sample), 0x40000001ull << 32 | 2);
      const int centre_y = static_cast<int>((std::uint64_t{words[0]} * kHeight) >> 32);
      const int centre_x = static_cast<int>((std::uint64_t{words[1]} * kWidth) >> 32);
      ++rows.at(static_cast<std::size_t>(centre_y));
      ++cols.at(static_cast<std::size_t>(centre_x));
      for (int y = 0; y < kHeight; ++y)
        EXPECT_EQ(draw.cuts_row(y), y >= centre_y - side / 2 && y < centre_y - side / 2 + side);
      for (int x = 0; x < kWidth; ++x)
        EXPECT_EQ(draw.cuts_col(x), x >= centre_x - side / 2 && x < centre_x - side / 2 + side);
      EXPECT_GE(draw.cut_top, 0);
      EXPECT_LE(draw.cut_bottom, kHeight);
      EXPECT_GE(draw.cut_left, 0);
      EXPECT_LE(draw.cut_right, kWidth);
    }
    expect_uniform(rows, kSamples);
    expect_uniform(cols, kSamples);
  }
}

/// torchvision's RandomResizedCrop.get_params in f64, from the same four uniform numbers; the box may differ by a pixel
/// where the root is within 0.01 of a half.
TEST(Draws, ResizedCropIsTorchvisions) {
  const auto uniform = [](std::uint32_t word) { return word * 0x1p-32; };
  const struct {
    int height, width, min, max;
  } cases[] = {{32, 32, 800, 10000}, {28, 40, 2500, 10000}, {224, 224, 800, 10000}, {50, 10, 5000, 10000},
               {9, 200, 9000, 9500}, {1, 1, 800, 10000},    {500, 375, 800, 2000}};
  for (const auto& c : cases)
    for (std::int64_t sample = 0; sample < 500; ++sample) {
      const Box box = draw_of({.area_min = c.min, .area_max = c.max}, kSeed, 4, sample, c.height, c.width).box;
      ASSERT_TRUE(box.height >= 1 && box.width >= 1 && box.top >= 0 && box.left >= 0);
      ASSERT_LE(box.top + box.height, c.height);
      ASSERT_LE(box.left + box.width, c.width);
      Box expected;
      bool doubtful = false;
      for (std::uint64_t attempt = 0; attempt < 10 && expected.height == 0; ++attempt) {
        const auto words = philox(kSeed, static_cast<std::uint64_t>(sample), (0x40000010ull + attempt) << 32 | 4);
        const double area = (c.min + (c.max - c.min) * uniform(words[0])) / 10000 * c.height * c.width;
        const double log_ratio = std::log(0.75) + (std::log(4.0 / 3) - std::log(0.75)) * uniform(words[1]);
        const double width = std::sqrt(area * std::exp(log_ratio)), height = std::sqrt(area / std::exp(log_ratio));
        for (double side : {width, height})
          if (std::abs(side - std::floor(side) - 0.5) < 0.01) doubtful = true;
        const int w = static_cast<int>(std::lround(width)), h = static_cast<int>(std::lround(height));
        if (w > 0 && w <= c.width && h > 0 && h <= c.height)
          expected = {.top = static_cast<int>(uniform(words[2]) * (c.height - h + 1)),
                      .left = static_cast<int>(uniform(words[3]) * (c.width - w + 1)),
                      .height = h,
                      .width = w};
      }
      if (doubtful) continue;
      if (expected.height == 0) {
        const double ratio = static_cast<double>(c.width) / c.height;
        expected.height = ratio < 0.75 ? static_cast<int>(std::lround(c.width / 0.75)) : c.height;
        expected.width = ratio > 4.0 / 3 ? static_cast<int>(std::lround(c.height * (4.0 / 3))) : c.width;
        expected.top = (c.height - expected.height) / 2;
        expected.left = (c.width - expected.width) / 2;
      }
      EXPECT_EQ(box.height, expected.height) << sample;
      EXPECT_EQ(box.width, expected.width) << sample;
      EXPECT_EQ(box.top, expected.top) << sample;
      EXPECT_EQ(box.left, expected.left) << sample;
    }
}

/// precompute_coeffs and normalize_coeffs_8bpc of Pillow's Resample.c, for a scale of at most 1, in f64.
TEST(Draws, TapsArePillowsBilinearFilter) {
  for (int out : {1, 2, 3, 7, 28, 32, 33, 224})
    for (int in = 1; in <= out; ++in)
      for (int i = 0; i < out; ++i) {
        const double centre = (i + 0.5) * in / out;
        const int first = std::max(static_cast<int>(centre - 1 + 0.5), 0);
        const int end = std::min(static_cast<int>(centre + 1 + 0.5), in);
        std::vector<double> weights;
        double sum = 0;
        for (int x = first; x < end; ++x) {
          weights.push_back(std::max(0.0, 1 - std::abs(x - centre + 0.5)));
          sum += weights.back();
        }
        for (double& weight : weights) weight = std::floor(0.5 + weight / sum * (1 << 22));
        weights.resize(2);
        const Taps taps = taps_of(i, in, out);
        ASSERT_EQ(taps.first, first) << i << " of " << in << " to " << out;
        ASSERT_EQ(taps.first_weight, weights[0]) << i << " of " << in << " to " << out;
        ASSERT_EQ(taps.second_weight, weights[1]) << i << " of " << in << " to " << out;
        ASSERT_LT(taps.second, in);
      }
}

TEST(Draws, DependOnSeedEpochAndSampleOnly) {
  constexpr Augmentation kAll{.flip = Flip::random, .crop = 4, .cutout = 8};
  const auto number_of = [](const Draw& d) {
    return (((d.flip * 16 + d.shift_y + 4) * 16 + d.shift_x + 4) * 64 + d.cut_bottom) * 64 + d.cut_right;
  };
  const auto draw = [&](std::uint64_t seed, std::int64_t epoch, std::int64_t sample) {
    return number_of(draw_of(kAll, seed, epoch, sample, 32, 32));
  };
  const std::int64_t far = (std::int64_t{1} << 32) + 5;
  EXPECT_EQ(draw(1, 2, 5), draw(1, 2, 5));
  for (int other : {draw(2, 2, 5), draw(1ull << 32 | 1, 2, 5), draw(1, 3, 5), draw(1, 2, 6), draw(1, 2, far)})
    EXPECT_NE(other, draw(1, 2, 5));
}

/// A step that is added does not change what the others draw.
TEST(Draws, OfOneStepAreThoseOfAll) {
  for (int sample = 0; sample < 50; ++sample) {
    const auto draw = [&](const Augmentation& what) { return draw_of(what, kSeed, 7, sample, 32, 32); };
    const Draw all = draw({.flip = Flip::random, .crop = 4, .cutout = 8});
    EXPECT_EQ(draw({.flip = Flip::random}).flip, all.flip);
    EXPECT_EQ(draw({.crop = 4}).shift_x, all.shift_x);
    EXPECT_EQ(draw({.cutout = 8}).cut_top, all.cut_top);
    const Draw none = draw({});
    EXPECT_FALSE(none.flip || none.shift_y || none.shift_x || none.cuts_row(0));
  }
}

/// The draws of a run must not change between versions: its checkpoints resume with them.
TEST(Draws, AreTheWordsOfPhilox) {
  const auto place = philox(kSeed, 123, 0x40000000ull << 32 | 9);
  const Draw draw = draw_of({.flip = Flip::random, .crop = 2}, kSeed, 9, 123, 32, 32);
  EXPECT_EQ(draw.flip, place[0] >= 0x80000000u);
  EXPECT_EQ(draw.shift_y, static_cast<int>((std::uint64_t{place[1]} * 5) >> 32) - 2);
  EXPECT_EQ(draw.shift_x, static_cast<int>((std::uint64_t{place[2]} * 5) >> 32) - 2);
  const auto first_flip = philox(kSeed, 123, 0x40000002ull << 32);
  EXPECT_EQ(draw_of({.flip = Flip::alternating}, kSeed, 8, 123, 32, 32).flip, first_flip[0] >= 0x80000000u);
}

TEST(Draws, RejectWhatDoesNotFitTheImage) {
  EXPECT_EQ(problem_of({}, 1, 1), nullptr);
  EXPECT_EQ(problem_of({.crop = 27, .cutout = 56}, 28, 28), nullptr);
  EXPECT_NE(problem_of({.crop = 28}, 28, 30), nullptr);
  EXPECT_NE(problem_of({.crop = -1}, 28, 28), nullptr);
  EXPECT_NE(problem_of({.cutout = -1}, 28, 28), nullptr);
  EXPECT_NE(problem_of({.cutout = 57}, 28, 28), nullptr);
  EXPECT_EQ(problem_of({.area_min = 1, .area_max = 10000}, 28, 28), nullptr);
  EXPECT_NE(problem_of({.area_min = 0, .area_max = 10000}, 28, 28), nullptr);
  EXPECT_NE(problem_of({.area_min = 1, .area_max = 10001}, 28, 28), nullptr);
  EXPECT_NE(problem_of({.area_min = 3, .area_max = 2}, 28, 28), nullptr);
  EXPECT_NE(problem_of({.area_min = 1, .area_max = 2, .crop = 1}, 28, 28), nullptr);
}

}  // namespace
}  // namespace gradring::kernels::gather_batch
