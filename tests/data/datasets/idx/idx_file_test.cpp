// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/idx/idx_file.h"

#include <gmock/gmock.h>

#include "data/error.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_idx.h"
#include "tests/support/allocated_bytes.h"
#include "tests/support/temp_folder.h"

namespace gradring::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using tests::Bytes;

class IdxFile : public ::testing::Test {
 protected:
  IdxArray read(const Bytes& bytes, int rank = 3) const { return read_idx(folder_.write("file", bytes), rank); }
  std::string error(const Bytes& bytes, int rank = 3) const {
    return tests::message_of<DataError>([&] { read(bytes, rank); });
  }

  /// Bytes that gzip cannot shrink.
  static Bytes noise(std::size_t count) {
    Bytes bytes(count);
    std::uint32_t state = 1;
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
    return bytes;
  }

  const tests::TempFolder folder_;
  const Bytes values_ = tests::counting(2 * 3 * 5);
  const Bytes plain_ = tests::idx_bytes({2, 3, 5}, values_);
  const Bytes packed_ = tests::gzipped(plain_);
};

TEST_F(IdxFile, ReadsPlainAndGzipAlike) {
  for (const Bytes& bytes : {plain_, packed_}) {
    const IdxArray array = read(bytes);
    EXPECT_EQ(array.extents, (std::vector<std::int64_t>{2, 3, 5}));
    EXPECT_EQ(array.values, values_);
  }
}

TEST_F(IdxFile, ReadsMoreThanOneInputBufferOfGzip) {
  const Bytes values = noise(300'000);
  EXPECT_EQ(read(tests::gzipped(tests::idx_bytes({300, 1000, 1}, values))).values, values);
}

TEST_F(IdxFile, ReadsExtentsBigEndian) {
  const Bytes many(258);
  EXPECT_EQ(read(tests::idx_bytes({258}, many), 1).extents.at(0), 258);
}

TEST_F(IdxFile, NamesFileFindingAndAdvice) {
  EXPECT_THAT(error({'<', '!', 'D', 'O'}),
              AllOf(HasSubstr((folder_.path() / "file").string()), HasSubstr("3c 21 44 4f"), HasSubstr("00 00 08 03"),
                    HasSubstr("check what was downloaded")));
}

TEST_F(IdxFile, RefusesLabelsWhereImagesBelong) {
  EXPECT_THAT(error(tests::idx_bytes({30}, values_)), HasSubstr("starts with 00 00 08 01"));
  EXPECT_THAT(error(plain_, 1), HasSubstr("starts with 00 00 08 03"));
}

TEST_F(IdxFile, RefusesEveryTruncationOfAPlainFile) {
  for (std::size_t size = 0; size < plain_.size(); ++size)
    EXPECT_THAT(error(Bytes(plain_.begin(), plain_.begin() + static_cast<long>(size))), HasSubstr("ends ")) << size;
}

TEST_F(IdxFile, RefusesEveryTruncationOfAGzipFile) {
  for (std::size_t size = 2; size < packed_.size(); ++size)
    EXPECT_THAT(error(Bytes(packed_.begin(), packed_.begin() + static_cast<long>(size))),
                HasSubstr("ends in the middle"))
        << size;
}

TEST_F(IdxFile, NeverTakesADamagedGzipForAnother) {
  for (std::size_t bit = 0; bit < packed_.size() * 8; ++bit) {
    Bytes damaged = packed_;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    try {
      EXPECT_EQ(read(damaged).values, values_) << "bit " << bit;  // a flip in the time stamp harms nothing
    } catch (const DataError&) {
    }
  }
}

TEST_F(IdxFile, RefusesTrailingBytes) {
  Bytes longer = plain_;
  longer.push_back(0);
  EXPECT_THAT(error(longer), HasSubstr("goes on after the 30 bytes"));
  EXPECT_THAT(error(tests::gzipped(longer)), HasSubstr("goes on after the 30 bytes"));
  Bytes with_rest = packed_;
  with_rest.push_back(0);
  EXPECT_THAT(error(with_rest), HasSubstr("after the end of its compressed data"));
  Bytes twice = packed_;
  twice.insert(twice.end(), packed_.begin(), packed_.end());
  EXPECT_THAT(error(twice), HasSubstr("after the end of its compressed data"));
}

TEST_F(IdxFile, RefusesAHeaderThatPromisesMoreThanTheFileCanHold) {
  for (const auto& extents : {std::vector<std::uint32_t>{0xffffffff, 0xffffffff, 0xffffffff}, {1u << 31, 1, 1}}) {
    const Bytes lie = tests::idx_bytes(extents, values_);
    EXPECT_THAT(error(lie), HasSubstr("far more than"));
    EXPECT_THAT(error(tests::gzipped(lie)), HasSubstr("far more than"));
  }
}

/// 3.9 GB, which a .gz of this size could hold.
TEST_F(IdxFile, TakesMemoryForWhatIsThereAndNotForWhatIsPromised) {
  const auto path = folder_.write("file", tests::gzipped(tests::idx_bytes({5'000'000, 28, 28}, noise(4u << 20))));
  const std::size_t before = tests::allocated_bytes();
  tests::reset_peak_allocated_bytes();
  EXPECT_THAT(tests::message_of<DataError>([&] { read_idx(path, 3); }), HasSubstr("ends before the 3920000000 bytes"));
  EXPECT_LT(tests::peak_allocated_bytes() - before, 64u << 20);
}

TEST_F(IdxFile, ReadsMoreThanTheFirstStepTakes) {
  const Bytes values(40'000'000, 7);
  EXPECT_EQ(read(tests::gzipped(tests::idx_bytes({40, 1000, 1000}, values))).values, values);
}

TEST_F(IdxFile, StopsInflatingWhereTheHeaderSays) {
  const Bytes bomb = tests::gzipped(tests::idx_bytes({1, 2, 2}, Bytes(64u << 20)));
  EXPECT_THAT(error(bomb), HasSubstr("goes on after the 4 bytes"));
}

TEST_F(IdxFile, RefusesWhatIsNoFile) {
  EXPECT_THAT(tests::message_of<DataError>([&] { read_idx(folder_.path() / "absent", 3); }),
              HasSubstr("cannot be opened"));
  EXPECT_THAT(tests::message_of<DataError>([&] { read_idx(folder_.path(), 3); }), HasSubstr("cannot be opened"));
}

}  // namespace
}  // namespace gradring::data
