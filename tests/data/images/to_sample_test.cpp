// SPDX-License-Identifier: Apache-2.0
#include "data/images/to_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/runtime/error.h"

namespace gradring::data {
namespace {

using testing::ElementsAre;

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

TEST(ToSample, RefusesOtherChannels) {
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
