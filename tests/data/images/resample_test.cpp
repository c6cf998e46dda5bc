// SPDX-License-Identifier: Apache-2.0
// Values of Pillow are in pillow_test.cpp.
#include "data/images/resample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/error.h"

namespace gradring::data {
namespace {

using testing::Each;
using testing::ElementsAre;

Image grey_pixels(std::int64_t height, std::int64_t width, std::vector<std::uint8_t> pixels) {
  return {.height = height, .width = width, .channels = 1, .pixels = std::move(pixels)};
}

TEST(ResizedAsPillow, KeepsWhatHasTheSizeAlready) {
  const Image image = grey_pixels(2, 3, {0, 255, 3, 77, 5, 6});
  EXPECT_EQ(resized_as_pillow(image, 2, 3).pixels, image.pixels);
}

TEST(ResizedAsPillow, KeepsAConstantAtEverySize) {
  for (const std::int64_t size : {1, 2, 31, 33, 255})
    EXPECT_THAT(resized_as_pillow(grey_pixels(9, 7, std::vector<std::uint8_t>(63, 255)), size, 300 - size).pixels,
                Each(255));
}

TEST(ResizedAsPillow, WeighsByATriangle) {
  // 4 to 2: the centre 1 is 0.5, 0.5 and 1.5 away from the pixels 0, 1, 2; weights 3/7, 3/7, 1/7.
  EXPECT_THAT(resized_as_pillow(grey_pixels(1, 4, {70, 140, 0, 0}), 1, 2).pixels, ElementsAre(90, 20));
  EXPECT_THAT(resized_as_pillow(grey_pixels(4, 1, {70, 140, 0, 0}), 2, 1).pixels, ElementsAre(90, 20));
}

TEST(ResizedAsPillow, RejectsNothingAndOtherChannels) {
  EXPECT_THROW(resized_as_pillow(grey_pixels(0, 0, {}), 2, 2), InvalidArgument);
  EXPECT_THROW(resized_as_pillow(grey_pixels(1, 1, {1}), 0, 2), InvalidArgument);
  EXPECT_THROW(resized_as_pillow({.height = 1, .width = 1, .channels = 2, .pixels = {1, 2}}, 2, 2), InvalidArgument);
}

TEST(ShorterSideResized, RoundsTheLongerDown) {
  const Image image = shorter_side_resized(grey_pixels(3, 10, std::vector<std::uint8_t>(30, 1)), 2);
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.width, 6);  // of 6.67
  EXPECT_EQ(shorter_side_resized(grey_pixels(5, 5, std::vector<std::uint8_t>(25, 1)), 2).width, 2);
}

TEST(CentreCrop, RoundsOffsetsToTheEven) {
  EXPECT_THAT(centre_crop(grey_pixels(1, 5, {0, 1, 2, 3, 4}), 1, 3).pixels, ElementsAre(1, 2, 3));
  EXPECT_THAT(centre_crop(grey_pixels(1, 4, {0, 1, 2, 3}), 1, 3).pixels, ElementsAre(0, 1, 2));        // 0.5 to 0
  EXPECT_THAT(centre_crop(grey_pixels(1, 6, {0, 1, 2, 3, 4, 5}), 1, 3).pixels, ElementsAre(2, 3, 4));  // 1.5 to 2
  EXPECT_THROW(centre_crop(grey_pixels(1, 4, {0, 1, 2, 3}), 2, 3), InvalidArgument);
}

}  // namespace
}  // namespace gradring::data
