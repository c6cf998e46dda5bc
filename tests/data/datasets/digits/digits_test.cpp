// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/digits/digits.h"

#include <gmock/gmock.h>

#include <array>
#include <set>
#include <vector>

#include "data/datasets/digits/digit_generator.h"
#include "tests/data/support/linear_model.h"

namespace gradring::data {
namespace {

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
  using Image = std::array<std::uint8_t, Canvas::kPixels>;
  const auto draw = [](std::uint64_t seed, std::uint64_t index) {
    Image image{};
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
