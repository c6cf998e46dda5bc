// SPDX-License-Identifier: Apache-2.0
// Pictures that the page writes, read by libpng.
#include "train/view/page/picture.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <fstream>
#include <vector>

#include "data/images/image.h"
#include "tests/support/temp_folder.h"

namespace gradring::train::page {
namespace {

using ::testing::ElementsAre;

data::Image read_back(const Picture& picture) {
  const tests::TempFolder folder;
  std::ofstream(folder.path() / "a.png", std::ios::binary) << png_of(picture);
  return data::read_image(folder.path() / "a.png");
}

TEST(Png, IsReadByLibpng) {
  if (data::png_library().empty()) GTEST_SKIP() << "this build has no libpng";
  const std::vector<std::uint8_t> color = {255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const data::Image read = read_back({.width = 3, .height = 2, .channels = 3, .pixels = color});
  EXPECT_EQ(read.width, 3);
  EXPECT_EQ(read.height, 2);
  EXPECT_EQ(read.pixels, color);
  const std::vector<std::uint8_t> grey = {0, 128};
  EXPECT_THAT(read_back({.width = 1, .height = 2, .pixels = grey}).pixels, ElementsAre(0, 0, 0, 128, 128, 128));
}

}  // namespace
}  // namespace gradring::train::page
