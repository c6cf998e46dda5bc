// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/images/decoders.h"
#include "kernels/base/error.h"

namespace gradring::data {
namespace {

using namespace std::string_literals;
using testing::ElementsAreArray;

/// Two entries, of which the second is the orientation.
std::string exif(bool little, std::uint8_t orientation, std::uint8_t type = 3) {
  const auto u16 = [little](std::uint8_t value) {
    return little ? std::string{char(value), 0} : std::string{0, char(value)};
  };
  const auto u32 = [little](std::uint8_t value) {
    return little ? std::string{char(value), 0, 0, 0} : std::string{0, 0, 0, char(value)};
  };
  const std::string tag = little ? "\x12\x01"s : "\x01\x12"s;
  return (little ? "II"s : "MM"s) + u16(42) + u32(8) + u16(2) + u16(99) + u16(3) + u32(1) + u32(7) + tag + u16(type) +
         u32(1) + u16(orientation) + u16(0) + u32(0);
}

TEST(Orientation, IsReadInBothByteOrders) {
  for (std::uint8_t value = 1; value <= 8; ++value) {
    EXPECT_EQ(orientation_of(exif(true, value), ""), value);
    EXPECT_EQ(orientation_of(exif(false, value), ""), value);
  }
}

TEST(Orientation, IsOneWhereTheExifSaysNothingSensible) {
  EXPECT_EQ(orientation_of("", ""), 1);
  EXPECT_EQ(orientation_of("Exif", ""), 1);
  EXPECT_EQ(orientation_of(exif(true, 0), ""), 1);
  EXPECT_EQ(orientation_of(exif(true, 9), ""), 1);
  EXPECT_EQ(orientation_of(exif(true, 6, 2), ""), 1) << "a text";
  EXPECT_EQ(orientation_of("II*\0\xff\xff\xff\xff"s, ""), 1) << "a directory beyond the end";
  const std::string whole = exif(false, 6);
  for (std::size_t size = 0; size < whole.size() - 6; ++size)
    EXPECT_EQ(orientation_of(std::string_view(whole).substr(0, size), ""), 1) << size;
}

TEST(Orientation, IsThatOfXmpWhereTheExifLacksTheTag) {
  const std::string xmp = "tiff:Orientation tiff:Orientation=6 tiff:Orientation=\"8\" tiff:Orientation>3<";
  EXPECT_EQ(orientation_of("", xmp), 8) << "the first that Pillow's pattern matches";
  EXPECT_EQ(orientation_of("", "<tiff:Orientation>3</tiff:Orientation>"), 3);
  EXPECT_EQ(orientation_of(exif(true, 6), xmp), 6);
  EXPECT_EQ(orientation_of(exif(true, 1), xmp), 1);
  EXPECT_EQ(orientation_of(exif(true, 9), xmp), 1) << "the tag is there";
  for (const char* text : {"", "tiff:Orientation", "tiff:Orientation=\"", "tiff:Orientation>x", "tiff:Orientation>9"})
    EXPECT_EQ(orientation_of("", text), 1) << text;
}

TEST(Orientation, TurnsAsExifTransposeDoes) {
  const Image image{.height = 2, .width = 3, .channels = 1, .pixels = {1, 2, 3, 4, 5, 6}};
  const std::vector<std::uint8_t> turned[] = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1},
                                              {4, 5, 6, 1, 2, 3}, {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3},
                                              {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Image result = oriented(image, orientation);
    EXPECT_EQ(result.height, orientation < 5 ? 2 : 3);
    EXPECT_EQ(result.width, orientation < 5 ? 3 : 2);
    EXPECT_THAT(result.pixels, ElementsAreArray(turned[orientation - 1])) << orientation;
  }
  EXPECT_THROW(oriented(image, 9), InvalidArgument);
}

}  // namespace
}  // namespace gradring::data
