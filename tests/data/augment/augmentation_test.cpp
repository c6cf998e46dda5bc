// SPDX-License-Identifier: Apache-2.0
#include "data/augment/augmentation.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "tests/data/support/message_of.h"

namespace gradring::data {
namespace {

using kernels::gather_batch::draw_of;
using kernels::gather_batch::Flip;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

TEST(ParseAugmentation, ReadsTheListInAnyOrder) {
  for (const char* none : {"", "none"}) EXPECT_FALSE(parse_augmentation(none).any());
  const Augmentation all = parse_augmentation("cutout=8,flip=alternating,crop=4");
  EXPECT_EQ(all.flip, Flip::alternating);
  EXPECT_EQ(all.crop, 4);
  EXPECT_EQ(all.cutout, 8);
  EXPECT_EQ(parse_augmentation("flip").flip, Flip::random);
  EXPECT_EQ(text_of(parse_augmentation("resized-crop")), "resized-crop=0.08:1") << "torchvision's default";
}

TEST(ParseAugmentation, ReadsWhatTextOfWrites) {
  for (const char* text : {"none", "flip", "crop=4,flip=alternating", "crop=2,flip,cutout=12", "cutout=1",
                           "resized-crop=0.08:1,flip", "resized-crop=0.3333:0.5", "resized-crop=1:1"})
    EXPECT_EQ(text_of(parse_augmentation(text)), text);
}

TEST(ParseAugmentation, RejectsOtherWordsAndNumbers) {
  for (const char* text : {"flp",
                           "flip=",
                           "flip=2",
                           "crop",
                           "crop=",
                           "crop=0",
                           "crop=-1",
                           "crop=4x",
                           "crop=65537",
                           "crop=99999999999",
                           "cutout=1.5",
                           "flip,flip=alternating",
                           "crop=1,crop=1",
                           ",",
                           "flip,",
                           ",flip",
                           "none,flip",
                           "flip crop=4",
                           "resized-crop=",
                           "resized-crop=0.5",
                           "resized-crop=0:1",
                           "resized-crop=0.5:0.4",
                           "resized-crop=0.5:1.1",
                           "resized-crop=0.5:1:",
                           "resized-crop=nan:1",
                           "resized-crop,crop=2"})
    EXPECT_THROW(parse_augmentation(text), InvalidArgument) << text;
  EXPECT_THAT(tests::message_of<InvalidArgument>([] { parse_augmentation("flip,mirror"); }), HasSubstr("'mirror'"));
  EXPECT_THAT(tests::message_of<InvalidArgument>([] { parse_augmentation("crop=2,crop=3"); }),
              HasSubstr("given twice"));
}

TEST(Augmenter, RejectsWhatDoesNotFitTheImages) {
  EXPECT_THAT(tests::message_of<InvalidArgument>([] { check_fits({.crop = 28}, {28, 32, 3}); }), HasSubstr("28 x 32"));
  EXPECT_THROW(Augmenter({.what = {.crop = 1}}, {1, 8, 1}), InvalidArgument);
  EXPECT_NO_THROW(Augmenter({.what = {.crop = 27}}, {28, 28, 1}));
}

/// Against the formulas of torchvision and DeVries: pad, cut a window, mirror, set a square to 0.
TEST(Augmenter, PadsCropsFlipsAndCuts) {
  constexpr int kHeight = 6, kWidth = 7, kChannels = 3, kPad = 2;
  std::vector<std::uint8_t> pixels(kHeight * kWidth * kChannels);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 37 + 1);
  const EpochAugmentation augmentation{
      .what = {.flip = Flip::random, .crop = kPad, .cutout = 3}, .seed = 5, .epoch = 2};
  Augmenter augmenter(augmentation, {kHeight, kWidth, kChannels});
  const auto reflect = [](int i, int size) { return i < 0 ? -i : i > size - 1 ? 2 * size - 2 - i : i; };
  for (std::int64_t sample = 0; sample < 60; ++sample) {
    const auto draw = draw_of(augmentation.what, augmentation.seed, augmentation.epoch, sample, kHeight, kWidth);
    std::vector<std::uint8_t> crop, expected;
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x)
        for (int c = 0; c < kChannels; ++c)
          crop.push_back(pixels[static_cast<std::size_t>(
              (reflect(y + draw.shift_y, kHeight) * kWidth + reflect(x + draw.shift_x, kWidth)) * kChannels + c)]);
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x)
        for (int c = 0; c < kChannels; ++c)
          expected.push_back(
              crop[static_cast<std::size_t>((y * kWidth + (draw.flip ? kWidth - 1 - x : x)) * kChannels + c)]);
    EXPECT_THAT(augmenter.crop_and_flip(sample, pixels), ElementsAreArray(expected));
    std::vector<float> normalized(pixels.size(), 1.0f);
    augmenter.cut_out(normalized);
    for (std::size_t i = 0; i < normalized.size(); ++i) {
      const int y = static_cast<int>(i) / kChannels / kWidth, x = static_cast<int>(i) / kChannels % kWidth;
      const bool cut = y >= draw.cut_top && y < draw.cut_bottom && x >= draw.cut_left && x < draw.cut_right;
      EXPECT_EQ(normalized[i], cut ? 0.0f : 1.0f);
    }
  }
}

TEST(Augmenter, WithoutAugmentationLeavesTheImages) {
  const std::vector<std::uint8_t> pixels = {1, 2, 3, 4};
  Augmenter augmenter({}, {2, 2, 1});
  EXPECT_EQ(augmenter.crop_and_flip(9, pixels).data(), pixels.data());
  std::vector<float> normalized = {1, 2, 3, 4};
  augmenter.cut_out(normalized);
  EXPECT_THAT(normalized, ::testing::ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace gradring::data
