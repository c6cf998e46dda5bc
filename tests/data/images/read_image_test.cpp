// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "data/files/byte_source.h"
#include "data/images/image.h"
#include "tests/data/support/flipped_bits.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_png.h"
#include "tests/support/safetensors.h"

namespace gradring::data {
namespace {

using namespace std::string_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using tests::Bytes;
using tests::WrittenPng;

class ReadImage : public testing::Test {
 protected:
  Image read(const Bytes& bytes) const { return read_image(folder_.write("image.bin", bytes)); }
  std::string refusal(const Bytes& bytes) const {
    return tests::message_of<DataError>([&] { read(bytes); });
  }

  tests::TempFolder folder_;
};

class ReadPng : public ReadImage {
 protected:
  void SetUp() override {
    if (png_library().empty()) GTEST_SKIP() << "built without libpng";
  }
};

class ReadJpeg : public ReadImage {
 protected:
  void SetUp() override {
    if (jpeg_library().empty()) GTEST_SKIP() << "built without libjpeg-turbo";
  }

  /// Of tests/golden/make_images.py: 23 x 37 pixels.
  static Bytes stored(const std::string& kind) {
    return tests::read_golden("images").at(kind + "_23x37.file").as<std::uint8_t>();
  }

  /// The same with another size in its frame header.
  static Bytes promising(Bytes jpeg, std::uint8_t height_256, std::uint8_t width_256, std::uint8_t frame = 0xc0) {
    const Bytes marker = {0xff, frame, 0};
    const auto at = std::ranges::search(jpeg, marker).begin();  // marker, length, bits, height, width
    at[5] = height_256;
    at[7] = width_256;
    return jpeg;
  }

  /// Beginnings, all near the end and some before, that are read although more than the end marker is missing.
  int read_in_spite_of_truncation(const Bytes& whole) const {
    int count = 0;
    for (std::size_t size = 0; size + 2 < whole.size(); size += size + 42 < whole.size() ? 11 : 1) try {
        read(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
        ++count;
      } catch (const DataError&) {
      }
    return count;
  }
};

TEST_F(ReadImage, NamesWhatIsNoImage) {
  EXPECT_THAT(refusal({}), HasSubstr("image.bin: is empty; copy"));
  EXPECT_THAT(refusal({'G', 'I', 'F', '8', '9', 'a', 0, 0}), HasSubstr("is a GIF; save it as a PNG or JPEG"));
  EXPECT_THAT(refusal({'R', 'I', 'F', 'F', 9, 0, 0, 0, 'W', 'E', 'B', 'P'}), HasSubstr("is a WebP image"));
  EXPECT_THAT(refusal({'I', 'I', '*', 0, 8}), HasSubstr("is a TIFF image"));
  EXPECT_THAT(refusal({0, 0, 0, 24, 'f', 't', 'y', 'p', 'h', 'e', 'i', 'c'}), HasSubstr("is a HEIF image"));
  EXPECT_THAT(refusal({'<', 'h', 't', 'm', 'l', '>'}), HasSubstr("is a web page"));
  EXPECT_THAT(refusal({1, 2, 3}), HasSubstr("begins neither as a PNG nor as a JPEG"));
  EXPECT_THAT(refusal({0xff, 0xd8}), HasSubstr("begins neither"));
}

TEST_F(ReadImage, NamesWhatCannotBeRead) {
  EXPECT_THAT(tests::message_of<DataError>([&] { read_image(folder_.path() / "none.jpg"); }),
              AllOf(HasSubstr("none.jpg: cannot be opened"), HasSubstr("that you may read it")));
  EXPECT_THROW(read_image(folder_.path()), DataError) << "a folder";
  EXPECT_THAT(tests::message_of<DataError>([] { read_image("/dev/zero"); }), HasSubstr("is larger than"));
}

TEST_F(ReadImage, SaysWhichLibraryIsMissing) {
  if (!png_library().empty() && !jpeg_library().empty()) GTEST_SKIP() << "this build has both";
  if (png_library().empty()) {
    EXPECT_THROW(read(WrittenPng{.rows = {1}}.bytes()), NoPngError);
  }
  if (jpeg_library().empty()) {
    EXPECT_THROW(read({0xff, 0xd8, 0xff, 0xe0}), NoJpegError);
  }
}

TEST_F(ReadPng, DropsTransparency) {
  EXPECT_THAT(read(WrittenPng{.colour = WrittenPng::rgba, .rows = {100, 0, 200, 0}}.bytes()).pixels,
              ElementsAre(100, 0, 200));
  EXPECT_THAT(read(WrittenPng{.colour = WrittenPng::grey_alpha, .rows = {7, 0}}.bytes()).pixels, ElementsAre(7, 7, 7));
  WrittenPng indexed{.colour = WrittenPng::indexed, .rows = {0}, .palette = {9, 8, 7}, .transparency = {0}};
  EXPECT_THAT(read(indexed.bytes()).pixels, ElementsAre(9, 8, 7));
}

TEST_F(ReadPng, KeepsTheUpperBitsOfSixteen) {
  EXPECT_THAT(read(WrittenPng{.width = 2, .bits = 16, .rows = {128, 255, 3, 1}}.bytes()).pixels,
              ElementsAre(128, 128, 128, 3, 3, 3));
}

TEST_F(ReadPng, IgnoresGamma) {
  Bytes png = WrittenPng{.rows = {100}}.bytes();
  const Bytes gamma = tests::png_chunk("gAMA", {0, 1, 0x86, 0xa0});  // 1: linear
  png.insert(png.begin() + 8 + 12 + 13, gamma.begin(), gamma.end());
  EXPECT_THAT(read(png).pixels, ElementsAre(100, 100, 100));
}

/// A PNG with chunks after its header.
Bytes with_chunks(Bytes png, const Bytes& chunks) {
  png.insert(png.begin() + 8 + 12 + 13, chunks.begin(), chunks.end());
  return png;
}

Bytes text_chunk(const std::string& type, const std::string& text) {
  return tests::png_chunk(type, Bytes(text.begin(), text.end()));
}

Bytes repeated(const Bytes& bytes, std::size_t times) {
  Bytes all;
  for (std::size_t i = 0; i < times; ++i) all.insert(all.end(), bytes.begin(), bytes.end());
  return all;
}

// By quadratic time, these would end after the time limit of a test.
TEST_F(ReadPng, TakesLinearTimeForManyChunks) {
  const Bytes png = WrittenPng{.width = 2, .rows = {3, 4}}.bytes();
  for (const Bytes& chunk : {text_chunk("tEXt", ""), text_chunk("tEXt", "a"s + '\0' + "b"), text_chunk("eXIf", ""),
                             text_chunk("zTXt", "Raw profile type exif\0\0x\x9c"s), text_chunk("IDAT", "")})
    EXPECT_THAT(read(with_chunks(png, repeated(chunk, 500'000))).pixels, ElementsAre(3, 3, 3, 4, 4, 4));
}

TEST_F(ReadPng, IgnoresDamagedMetadata) {
  const Bytes png = WrittenPng{.width = 2, .rows = {3, 4}}.bytes();
  const std::string key = "Raw profile type exif"s + '\0';
  for (const std::string& text :
       {""s, "\n"s, "\n\n\n"s, "\n\n\n4"s, "\n\n\n4949"s, "\n\n\nzz"s, "\0"s, "\1"s, "\1\0"s, "\1\0\0"s, "\1\0\0\0x"s})
    for (const char* type : {"tEXt", "zTXt", "iTXt"})
      EXPECT_EQ(read(with_chunks(png, text_chunk(type, key + text))).width, 2) << type;
  Bytes damaged = text_chunk("eXIf", "II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0"s);
  EXPECT_EQ(read(with_chunks(png, damaged)).width, 1) << "turned";
  damaged.back() ^= 1;
  EXPECT_EQ(read(with_chunks(png, damaged)).width, 2) << "a wrong checksum";
}

TEST_F(ReadPng, TakesNoMemoryForWhatIsOnlySaid) {
  EXPECT_THAT(refusal(WrittenPng{.width = 100'000, .height = 100'000, .rows = {1}}.bytes()),
              AllOf(HasSubstr("100000 x 100000"), HasSubstr("make it smaller")));
  Bytes png = WrittenPng{.rows = {1}}.bytes();
  const Bytes exif = tests::png_chunk("eXIf", {'I', 'I', '*', 0, 8, 0, 0, 0});
  png.insert(png.begin() + 8 + 12 + 13, exif.begin(), exif.end());
  EXPECT_EQ(read(png).width, 1);
  png[8 + 12 + 13] = 0x68;  // a length of 1.7 GB
  EXPECT_THROW(read(png), DataError);
}

TEST_F(ReadPng, EveryTruncationIsRejected) {
  const Bytes whole = WrittenPng{.width = 5, .height = 7, .colour = WrittenPng::rgb, .rows = Bytes(105, 9)}.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(read(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))), DataError) << size;
}

// With a list of all segments, this would take hours.
TEST_F(ReadJpeg, TakesLinearTimeForManySegments) {
  const Bytes plain = stored("jpeg_420");
  Bytes jpeg = plain;
  const Bytes segments = repeated({0xff, 0xe1, 0, 2}, 2'000'000);
  jpeg.insert(jpeg.begin() + 2, segments.begin(), segments.end());
  EXPECT_EQ(read(jpeg).pixels, read(plain).pixels);
}

TEST_F(ReadJpeg, RejectsASegmentThatIsTooShortOrTooLong) {
  for (const Bytes& length : {Bytes{0, 0}, Bytes{0, 1}, Bytes{0xff, 0xff}}) {
    Bytes jpeg = {0xff, 0xd8, 0xff, 0xe1};
    jpeg.insert(jpeg.end(), length.begin(), length.end());
    EXPECT_THAT(refusal(jpeg), HasSubstr("cannot be read as a JPEG (Bogus marker length)"));
  }
  EXPECT_THAT(refusal({0xff, 0xd8, 0xff, 0xe1, 0}), HasSubstr("cannot be read as a JPEG (Bogus marker length)"));
}

TEST_F(ReadJpeg, RejectsABombByItsHeader) {
  EXPECT_THAT(refusal(promising(stored("jpeg_420"), 0xff, 0xff)),
              AllOf(HasSubstr("image.bin: "), HasSubstr("make it smaller")));
  EXPECT_THAT(refusal(promising(stored("jpeg_progressive"), 0x40, 0x40, 0xc2)), HasSubstr("make it smaller"));
}

TEST_F(ReadJpeg, RejectsMoreRowsThanItHas) {
  EXPECT_THAT(refusal(promising(stored("jpeg_420"), 1, 0)),
              AllOf(HasSubstr("cannot be read as a JPEG"), HasSubstr("copy it again")));
}

TEST_F(ReadJpeg, TruncationsAreRejected) {
  for (const char* kind : {"jpeg_420", "jpeg_progressive", "jpeg_cmyk", "jpeg_turned_6"})
    EXPECT_EQ(read_in_spite_of_truncation(stored(kind)), 0) << kind;
}

TEST_F(ReadJpeg, FlippedBitsDoNotCrashIt) {
  constexpr unsigned kSeed = 11;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  int rejected = 0;
  for (const char* kind : {"jpeg_420", "jpeg_progressive", "jpeg_cmyk", "jpeg_turned_6"})
    rejected += tests::rejected_with_flipped_bits(stored(kind), 150, random,
                                                  [&](const Bytes& flipped) { EXPECT_EQ(read(flipped).channels, 3); });
  EXPECT_GT(rejected, 20);
}

}  // namespace
}  // namespace gradring::data
