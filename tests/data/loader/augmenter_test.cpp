// SPDX-License-Identifier: Apache-2.0
#include "data/loader/augmenter.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/augment/lambdas.h"
#include "kernels/base/error.h"
#include "tests/data/support/message_of.h"

namespace gradring::data {
namespace {

using kernels::gather_batch::draw_of;
using kernels::gather_batch::Flip;
using kernels::gather_batch::mix_of;
using ::testing::HasSubstr;

class AugmenterTest : public ::testing::Test {
 protected:
  static constexpr int kHeight = 6, kWidth = 7, kChannels = 3, kSamples = 60;

  static InMemoryDataset noise() {
    InMemoryDataset::Contents contents{
        .name = "noise", .shape = {kHeight, kWidth, kChannels}, .classes = kSamples, .pixels = {}, .labels = {}};
    for (int i = 0; i < kSamples * kHeight * kWidth * kChannels; ++i)
      contents.pixels.push_back(static_cast<std::uint8_t>(i * 37 % 251 + 1));
    for (int i = 0; i < kSamples; ++i) contents.labels.push_back(static_cast<std::uint8_t>(i));
    return InMemoryDataset(std::move(contents));
  }

  static std::size_t index(int y, int x, int c) { return static_cast<std::size_t>((y * kWidth + x) * kChannels + c); }

  std::vector<float> written(Augmenter& augmenter, std::int64_t sample, MixedLabel* label = nullptr) const {
    std::vector<float> image(kHeight * kWidth * kChannels);
    const MixedLabel found = augmenter.write(sample, image);
    if (label) *label = found;
    return image;
  }
  /// Pad, cut a window, mirror: the formulas of torchvision.
  std::vector<double> cropped(const EpochAugmentation& a, std::int64_t sample) const {
    const auto reflect = [](int i, int size) { return i < 0 ? -i : i > size - 1 ? 2 * size - 2 - i : i; };
    const auto draw = draw_of(a.what, a.seed, a.epoch, sample, kHeight, kWidth);
    const auto pixels = dataset_.pixels(sample);
    std::vector<double> image;
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x)
        for (int c = 0; c < kChannels; ++c)
          image.push_back(pixels[index(reflect(y + draw.shift_y, kHeight),
                                       reflect((draw.flip ? kWidth - 1 - x : x) + draw.shift_x, kWidth), c)]);
    return image;
  }

  InMemoryDataset dataset_ = noise();
  Normalize normalize_ = Normalize({.mean = {0.0f}, .std = {1.0f}}, kChannels);
};

TEST_F(AugmenterTest, PadsCropsFlipsAndCuts) {
  const EpochAugmentation augmentation{.what = {.flip = Flip::random, .crop = 2, .cutout = 3}, .seed = 5, .epoch = 2};
  Augmenter augmenter(dataset_, normalize_, augmentation);
  for (std::int64_t sample = 0; sample < kSamples; ++sample) {
    const auto draw = draw_of(augmentation.what, augmentation.seed, augmentation.epoch, sample, kHeight, kWidth);
    const std::vector<double> crop = cropped(augmentation, sample);
    const std::vector<float> image = written(augmenter, sample);
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x)
        for (int c = 0; c < kChannels; ++c) {
          const bool cut = y >= draw.cut_top && y < draw.cut_bottom && x >= draw.cut_left && x < draw.cut_right;
          EXPECT_EQ(image[index(y, x, c)], cut ? 0.0f : static_cast<float>(crop[index(y, x, c)]) / 255.0f);
        }
  }
}

/// Of images that are cropped and flipped; a cutout comes after the mixture.
TEST_F(AugmenterTest, MixesWithAnotherSample) {
  for (const bool pastes : {false, true}) {
    EpochAugmentation augmentation{.what = {.flip = Flip::random, .crop = 2, .cutout = 2}, .seed = 5, .epoch = 2};
    (pastes ? augmentation.what.cutmix : augmentation.what.mixup) = 1000;
    const auto lambdas = lambdas_of(augmentation.what);
    augmentation.lambdas = lambdas;
    Augmenter augmenter(dataset_, normalize_, augmentation);
    for (std::int64_t sample = 0; sample < kSamples; ++sample) {
      const auto draw = draw_of(augmentation.what, augmentation.seed, augmentation.epoch, sample, kHeight, kWidth);
      const auto mix = mix_of(augmentation.what, augmentation.seed, augmentation.epoch, sample, kSamples, kHeight,
                              kWidth, lambdas.data());
      const std::vector<double> own = cropped(augmentation, sample), other = cropped(augmentation, mix.partner);
      MixedLabel label;
      const std::vector<float> image = written(augmenter, sample, &label);
      EXPECT_EQ(label.label, sample);
      EXPECT_EQ(label.label_b, mix.partner);
      double weight_b = 0;
      for (int y = 0; y < kHeight; ++y)
        for (int x = 0; x < kWidth; ++x) {
          const double lambda = pastes ? !mix.shows_partner(y, x) : mix.weight / 65536.0;
          weight_b += (1 - lambda) / (kHeight * kWidth);
          for (int c = 0; c < kChannels; ++c) {
            const std::size_t i = index(y, x, c);
            const double expected =
                draw.cuts_row(y) && draw.cuts_col(x) ? 0 : (lambda * own[i] + (1 - lambda) * other[i]) / 255;
            EXPECT_NEAR(image[i], expected, 1e-7) << sample;
          }
        }
      EXPECT_NEAR(label.weight_b, weight_b, 1e-6);
    }
  }
}

TEST_F(AugmenterTest, WithoutAugmentationNormalizesAlone) {
  Augmenter augmenter(dataset_, normalize_, {});
  MixedLabel label;
  const std::vector<float> image = written(augmenter, 9, &label);
  std::vector<float> expected(image.size());
  normalize_.apply(dataset_.pixels(9), expected);
  EXPECT_EQ(image, expected);
  EXPECT_EQ(label.label, 9);
  EXPECT_EQ(label.weight_b, 0);
}

TEST_F(AugmenterTest, RejectsWhatDoesNotFit) {
  EXPECT_THROW(Augmenter(dataset_, normalize_, {.what = {.crop = 6}}), InvalidArgument);
  EXPECT_THAT(tests::message_of<InvalidArgument>([&] { Augmenter(dataset_, normalize_, {.what = {.mixup = 200}}); }),
              HasSubstr("table of lambdas"));
}

}  // namespace
}  // namespace gradring::data
