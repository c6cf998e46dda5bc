// SPDX-License-Identifier: Apache-2.0
// Values of Pillow are in pillow_test.cpp.
#include "data/images/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/base/error.h"

namespace gradring::data {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;
using Bytes = std::vector<std::uint8_t>;

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

std::int64_t half_to_even(std::int64_t rest) { return std::lrint(static_cast<double>(rest) / 2); }

/// The whole image resized, then its middle, by torchvision's formulas.
Bytes middle_of_resized(const Image& image, std::int64_t size, std::int64_t crop) {
  const std::int64_t shorter = std::min(image.height, image.width);
  const Image whole = resized_as_pillow(image, size * image.height / shorter, size * image.width / shorter);
  const std::int64_t top = half_to_even(whole.height - crop), left = half_to_even(whole.width - crop);
  Bytes pixels;
  for (std::int64_t row = top; row < top + crop; ++row)
    for (std::int64_t col = left; col < left + crop; ++col)
      for (std::int64_t channel = 0; channel < image.channels; ++channel) pixels.push_back(whole.at(row, col, channel));
  return pixels;
}

TEST(ResizedMiddle, RoundsOffsetsToTheEven) {
  EXPECT_THAT(resized_middle(grey_pixels(1, 4, {0, 1, 2, 3}), 1, 1).pixels, ElementsAre(2));  // 1.5 to 2
  EXPECT_THAT(resized_middle(grey_pixels(1, 5, {0, 1, 2, 3, 4}), 1, 1).pixels, ElementsAre(2));
  EXPECT_THAT(resized_middle(grey_pixels(6, 1, {0, 1, 2, 3, 4, 5}), 1, 1).pixels, ElementsAre(2));  // 2.5 to 2
}

TEST(ResizedMiddle, IsTheCropOfTheWholeResized) {
  constexpr unsigned kSeed = 3;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  for (int i = 0; i < 60; ++i) {
    const auto up_to = [&random](std::int64_t most) { return 1 + static_cast<std::int64_t>(random()) % most; };
    Image image{.height = up_to(90), .width = up_to(90), .channels = i % 2 ? 3 : 1, .pixels = {}};
    for (std::int64_t j = 0; j < image.height * image.width * image.channels; ++j)
      image.pixels.push_back(static_cast<std::uint8_t>(random()));
    const std::int64_t size = up_to(50), crop = up_to(size);
    EXPECT_EQ(resized_middle(image, size, crop).pixels, middle_of_resized(image, size, crop))
        << image.height << " x " << image.width << " to " << size << ", " << crop;
  }
}

TEST(ResizedMiddle, TakesNoMemoryForWhatIsCutOff) {
  constexpr std::int64_t kLong = 1 << 20;  // as a whole 800 GB
  for (const bool wide : {false, true}) {
    const Image image{
        .height = wide ? 1 : kLong, .width = wide ? kLong : 1, .channels = 3, .pixels = Bytes(3 * kLong, 7)};
    EXPECT_THAT(resized_middle(image, 512, 2).pixels, AllOf(SizeIs(12), Each(7)));
  }
  EXPECT_THROW(resized_middle(grey_pixels(1, 1, {1}), 2, 3), InvalidArgument);
}

}  // namespace
}  // namespace gradring::data
