// SPDX-License-Identifier: Apache-2.0
// What writers of gzip files may write (RFC 1952): gzip, pigz, bgzip, cat, tapes.
#include <gmock/gmock.h>
#include <zlib.h>

#include <string>

#include "data/files/byte_source.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_idx.h"
#include "tests/support/temp_folder.h"

namespace gradring::data {
namespace {

using ::testing::HasSubstr;
using tests::Bytes;

Bytes joined(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

class Gzip : public ::testing::Test {
 protected:
  /// All that can be read, in pieces of `piece` bytes.
  Bytes read(const Bytes& packed, std::size_t piece = 1000) const {
    const auto source = open_gzip(folder_.write("file.gz", packed));
    Bytes all, part(piece);
    for (std::size_t count = piece; count == piece;) {
      count = source->read(part);
      all.insert(all.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return all;
  }
  std::string error(const Bytes& packed) const {
    return tests::message_of<DataError>([&] { read(packed); });
  }

  const tests::TempFolder folder_;
  const Bytes first_ = tests::counting(5000), second_ = tests::counting(70);
  const Bytes a_ = tests::gzipped(first_), b_ = tests::gzipped(second_), empty_ = tests::gzipped({});
};

TEST_F(Gzip, ReadsAllMembers) {
  for (const std::size_t piece : {1u, 7u, 5000u, 6000u})
    EXPECT_EQ(read(joined({a_, b_, a_}), piece), joined({first_, second_, first_})) << piece;
  Bytes many, expected;
  for (int i = 0; i < 2000; ++i) many = joined({many, b_}), expected = joined({expected, second_});
  EXPECT_EQ(read(many), expected) << "more than one input buffer";
}

/// bgzip ends with an empty member.
TEST_F(Gzip, ReadsEmptyMembers) {
  EXPECT_EQ(read(empty_), Bytes());
  EXPECT_EQ(read(joined({empty_, a_, empty_, empty_, b_, empty_})), joined({first_, second_}));
}

TEST_F(Gzip, SkipsZerosAfterAMember) {
  EXPECT_EQ(read(joined({a_, Bytes(100'000)})), first_);
  EXPECT_EQ(read(joined({a_, Bytes(512), b_, Bytes(1)})), joined({first_, second_}));
}

TEST_F(Gzip, RejectsOtherBytesAfterAMember) {
  EXPECT_THAT(error(joined({a_, {'x'}})), HasSubstr("after the end of its compressed data"));
  EXPECT_THAT(error(joined({a_, Bytes(512), {1}})), HasSubstr("after the end of its compressed data"));
  EXPECT_THAT(error(joined({a_, {0x1f, 0x8c}})), HasSubstr("is not a valid .gz file"));
  EXPECT_THAT(error(joined({a_, {0x1f}})), HasSubstr("ends in the middle"));
}

TEST_F(Gzip, VerifiesEveryMember) {
  for (const std::size_t from_end : {8u, 4u}) {  // the checksum and the length
    Bytes damaged = joined({a_, b_});
    damaged[damaged.size() - from_end] ^= 1;
    EXPECT_THAT(error(damaged), HasSubstr("is not a valid .gz file"));
    damaged = joined({a_, b_});
    damaged[a_.size() - from_end] ^= 1;
    EXPECT_THAT(error(damaged), HasSubstr("is not a valid .gz file"));
  }
}

/// FTEXT, FHCRC, FEXTRA, FNAME and FCOMMENT, in every combination.
TEST_F(Gzip, ReadsEveryHeaderField) {
  for (int flags = 0; flags < 32; ++flags) {
    Bytes member = {0x1f, 0x8b, 8, static_cast<std::uint8_t>(flags), 1, 2, 3, 4, 2, 3};
    if (flags & 4) member = joined({member, {6, 0, 'B', 'C', 2, 0, 0xff, 0x1f}});
    if (flags & 8) member = joined({member, {'a', 0xe4, 0}});
    if (flags & 16) member = joined({member, {'h', 'i', 0}});
    if (flags & 2) {
      const auto sum = crc32(0, member.data(), static_cast<uInt>(member.size()));
      member = joined({member, {static_cast<std::uint8_t>(sum), static_cast<std::uint8_t>(sum >> 8)}});
    }
    member.insert(member.end(), a_.begin() + 10, a_.end());
    EXPECT_EQ(read(joined({b_, member})), joined({second_, first_})) << "flags " << flags;
  }
}

}  // namespace
}  // namespace gradring::data
