// SPDX-License-Identifier: Apache-2.0
#include "data/images/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/error.h"

namespace gradring::data {
namespace {

using testing::Each;
using testing::ElementsAre;

Image grey(std::int64_t height, std::int64_t width, std::vector<std::uint8_t> pixels) {
  return {.height = height, .width = width, .channels = 1, .pixels = std::move(pixels)};
}

TEST(Resize, KeepsWhatHasTheSizeAlready) {
  const Image image = grey(2, 3, {0, 255, 3, 77, 5, 6});
  EXPECT_EQ(resized(image, 2, 3).pixels, image.pixels);
}

TEST(Resize, MeansAreasWhereItShrinks) {
  EXPECT_THAT(resized(grey(2, 4, {0, 100, 8, 8, 200, 100, 8, 9}), 1, 2).pixels, ElementsAre(100, 8));
  // 3 -> 2: the middle pixel belongs half to each
  EXPECT_THAT(resized(grey(1, 3, {90, 30, 0}), 1, 2).pixels, ElementsAre(70, 10));
  EXPECT_THAT(resized(grey(3, 1, {90, 30, 0}), 2, 1).pixels, ElementsAre(70, 10));
  EXPECT_THAT(resized(grey(1, 7, {7, 7, 7, 7, 7, 7, 7}), 1, 3).pixels, Each(7));
}

TEST(Resize, JoinsCentresWhereItGrows) {
  EXPECT_THAT(resized(grey(1, 2, {0, 100}), 1, 4).pixels, ElementsAre(0, 25, 75, 100));
  EXPECT_THAT(resized(grey(1, 1, {200}), 3, 5).pixels, Each(200));
}

TEST(Resize, TreatsEachAxisByItself) {
  EXPECT_THAT(resized(grey(2, 2, {0, 100, 100, 200}), 1, 4).pixels, ElementsAre(50, 75, 125, 150));
}

TEST(Resize, KeepsChannelsApart) {
  const Image image{.height = 1, .width = 2, .channels = 3, .pixels = {10, 20, 30, 30, 40, 70}};
  EXPECT_THAT(resized(image, 1, 1).pixels, ElementsAre(20, 30, 50));
}

TEST(Resize, KeepsTheMeanOfAwkwardSizes) {
  for (const std::int64_t from : {29, 31, 57, 1023}) {
    Image image = grey(from, from, {});
    const std::int64_t white = from / 2;
    for (std::int64_t i = 0; i < from * from; ++i) image.pixels.push_back(i % from < white ? 255 : 0);
    const Image small = resized(image, 28, 28);
    double sum = 0;
    for (const std::uint8_t value : small.pixels) sum += value;
    const double share = static_cast<double>(white) / static_cast<double>(from);
    EXPECT_NEAR(sum / (28 * 28), 255 * share, 0.05) << from;
  }
}

TEST(Resize, RejectsNothing) {
  EXPECT_THROW(resized(grey(0, 0, {}), 2, 2), InvalidArgument);
  EXPECT_THROW(resized(grey(1, 1, {1}), 0, 2), InvalidArgument);
}

TEST(ToSample, GreyIsAsInTorchvision) {
  // PIL's convert("L") of the same colours.
  const Image image{
      .height = 1, .width = 5, .channels = 3, .pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 90, 200, 128, 128, 128}};
  EXPECT_THAT(to_sample(image, {1, 5, 1}, false), ElementsAre(76, 150, 29, 78, 128));
}

TEST(ToSample, GreyBecomesThreeEqualChannels) {
  const Image image{.height = 1, .width = 2, .channels = 1, .pixels = {3, 250}};
  EXPECT_THAT(to_sample(image, {1, 2, 3}, false), ElementsAre(3, 3, 3, 250, 250, 250));
}

TEST(ToSample, InvertsBehindTheResizing) {
  const Image image{.height = 1, .width = 4, .channels = 1, .pixels = {0, 10, 255, 255}};
  EXPECT_THAT(to_sample(image, {1, 2, 1}, true), ElementsAre(250, 0));
}

TEST(ToSample, RejectsOtherChannels) {
  const Image image{.height = 1, .width = 1, .channels = 1, .pixels = {3}};
  EXPECT_THROW(to_sample(image, {1, 1, 2}, false), InvalidArgument);
  EXPECT_THROW(to_sample(image, {1, 1}, false), InvalidArgument);
}

TEST(ToSample, KnowsALightBorder) {
  const kernels::Shape sample{4, 4, 1};
  std::vector<std::uint8_t> paper(16, 230), board(16, 10);
  for (const std::size_t inner : {5, 6, 9, 10}) {
    paper[inner] = 0;
    board[inner] = 255;
  }
  EXPECT_TRUE(has_light_border(paper, sample));
  EXPECT_FALSE(has_light_border(board, sample));
}

}  // namespace
}  // namespace gradring::data
