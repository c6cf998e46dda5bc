// SPDX-License-Identifier: Apache-2.0
#include "data/images/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "data/files/byte_source.h"
#include "tests/data/support/flipped_bits.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_png.h"

namespace gradring::data {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using tests::Bytes;
using tests::WrittenPng;

class Png : public testing::Test {
 protected:
  void SetUp() override {
    if (png_library().empty()) GTEST_SKIP() << "built without libpng";
  }

  Image read(const Bytes& bytes) const { return read_image(folder_.write("image.png", bytes)); }
  Image read(const WrittenPng& png) const { return read(png.bytes()); }
  std::string refusal(const Bytes& bytes) const {
    return tests::message_of<DataError>([&] { read(bytes); });
  }

  tests::TempFolder folder_;
};

TEST_F(Png, GreyOfEveryDepthBecomesEightBits) {
  const std::pair<int, Bytes> two_pixels[] = {
      {1, {0x40}}, {2, {0x30}}, {4, {0x0f}}, {8, {0, 255}}, {16, {0, 0, 255, 255}}};
  for (const auto& [bits, rows] : two_pixels) {
    const Image image =
        read({.width = 2, .bits = static_cast<std::uint8_t>(bits), .colour = WrittenPng::grey, .rows = rows});
    EXPECT_EQ(image.width, 2);
    EXPECT_EQ(image.channels, 3);
    EXPECT_THAT(image.pixels, ElementsAre(0, 0, 0, 255, 255, 255)) << bits << " bits";
  }
  EXPECT_THAT(read({.width = 3, .bits = 2, .rows = {0x18}}).pixels, ElementsAre(0, 0, 0, 85, 85, 85, 170, 170, 170));
  EXPECT_THAT(read({.bits = 16, .rows = {128, 128}}).pixels, Each(128)) << "16 bits are no more linear than 8";
}

TEST_F(Png, ColoursAndPalettesKeepTheirValues) {
  EXPECT_THAT(read({.height = 2, .colour = WrittenPng::rgb, .rows = {1, 2, 3, 250, 251, 252}}).pixels,
              ElementsAre(1, 2, 3, 250, 251, 252));
  EXPECT_THAT(
      read({.width = 2, .bits = 1, .colour = WrittenPng::indexed, .rows = {0x40}, .palette = {9, 8, 7, 6, 5, 4}})
          .pixels,
      ElementsAre(9, 8, 7, 6, 5, 4));
}

TEST_F(Png, KeepsTransparencyWhereItIsAskedFor) {
  const auto kept = [this](const WrittenPng& png) {
    return read_image(folder_.write("image.png", png.bytes()), Alpha::keep);
  };
  EXPECT_THAT(kept({.width = 2, .colour = WrittenPng::grey_alpha, .rows = {7, 0, 9, 128}}).pixels,
              ElementsAre(7, 7, 7, 0, 9, 9, 9, 128));
  EXPECT_THAT(kept({.colour = WrittenPng::rgba, .rows = {100, 0, 200, 51}}).pixels, ElementsAre(100, 0, 200, 51));
  EXPECT_THAT(kept({.bits = 16, .colour = WrittenPng::rgba, .rows = {1, 9, 2, 9, 3, 9, 4, 9}}).pixels,
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(kept({.width = 2,
                    .bits = 4,
                    .colour = WrittenPng::indexed,
                    .rows = {0x01},
                    .palette = {9, 8, 7, 6, 5, 4},
                    .transparency = {51}})
                  .pixels,
              ElementsAre(9, 8, 7, 51, 6, 5, 4, 255));
  EXPECT_THAT(kept({.width = 2, .rows = {3, 4}, .transparency = {0, 4}}).pixels, ElementsAre(3, 3, 3, 255, 4, 4, 4, 0));
  EXPECT_EQ(kept({.colour = WrittenPng::rgb, .rows = {1, 2, 3}}).channels, 3) << "without transparency";
}

TEST_F(Png, TakesNoMemoryForSizesThatAreOnlySaid) {
  EXPECT_THAT(refusal(WrittenPng{.width = 100'000, .height = 100'000, .rows = {1}}.bytes()),
              AllOf(HasSubstr("100000 x 100000"), HasSubstr("make it smaller")));
  EXPECT_THAT(refusal(WrittenPng{.width = 4096, .height = 8193, .rows = {1}}.bytes()), HasSubstr("4096 x 8193"));
  EXPECT_THAT(refusal(WrittenPng{.width = 0x7fffffff, .height = 0x7fffffff, .rows = {1}}.bytes()),
              HasSubstr("make it smaller"));
  EXPECT_THROW(read(WrittenPng{.width = 0, .rows = {}}), DataError);
}

TEST_F(Png, IsReadWhereOneSideIsLong) {
  EXPECT_EQ(read(WrittenPng{.width = 1'100'000, .height = 1, .rows = Bytes(1'100'000, 9)}).width, 1'100'000);
}

TEST_F(Png, RejectsAChunkLongerThanTheFile) {
  const Bytes text = tests::png_chunk("tEXt", {'k', 0, 'v'});
  Bytes png = WrittenPng{.rows = {1}}.bytes();
  const auto behind_header = png.begin() + 8 + 12 + 13;
  png.insert(behind_header, text.begin(), text.end());
  EXPECT_THAT(read(png).pixels, Each(1)) << "a text is no hindrance";
  png[8 + 12 + 13] = 0x68;  // 1.7 GB, which libpng would allocate
  EXPECT_THAT(refusal(png), HasSubstr("image.png: cannot be read as a PNG (it is truncated)"));
}

TEST_F(Png, EveryTruncationIsRejectedOrHarmless) {
  WrittenPng png{.width = 5, .height = 7, .colour = WrittenPng::rgba, .rows = Bytes(5 * 7 * 4)};
  for (std::size_t i = 0; i < png.rows.size(); ++i) png.rows[i] = static_cast<std::uint8_t>(i * 37);
  const Bytes whole = png.bytes();
  const Image image = read(whole);
  constexpr std::size_t kEnd = 12;  // the last chunk says nothing
  for (std::size_t size = 0; size + kEnd < whole.size(); ++size)
    EXPECT_THROW(read(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))), DataError) << size;
  EXPECT_EQ(read(whole).pixels, image.pixels);
}

TEST_F(Png, FlippedBitsDoNotCrashIt) {
  constexpr unsigned kSeed = 11;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  WrittenPng png{.width = 9, .height = 9, .bits = 4, .colour = WrittenPng::indexed, .rows = Bytes(45, 0x21)};
  png.palette = Bytes(48, 77);
  png.transparency = Bytes(16, 99);
  const int rejected = tests::rejected_with_flipped_bits(
      png.bytes(), 2000, random, [&](const Bytes& flipped) { EXPECT_EQ(read(flipped).channels, 3); });
  EXPECT_GT(rejected, 1000);
}

}  // namespace
}  // namespace gradring::data
