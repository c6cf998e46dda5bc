// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/tar_reader.h"

#include <gmock/gmock.h>

#include "data/files/byte_source.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_idx.h"
#include "tests/data/support/written_tar.h"

namespace gradring::data {
namespace {

using ::testing::HasSubstr;
using tests::Bytes;

class TarReaderTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const Bytes& bytes) const { return folder_.write("archive.tar", bytes); }

  /// Reads everything.
  static void read_through(const std::filesystem::path& path) {
    TarReader reader(path);
    Bytes piece(700);
    while (reader.next())
      while (reader.read(piece) > 0) continue;
  }
  std::string error(const Bytes& bytes) const {
    return tests::message_of<DataError>([&] { read_through(write(bytes)); });
  }

  const tests::TempFolder folder_;
};

Bytes read_member(TarReader& reader) {
  Bytes content, piece(100);
  while (const std::size_t count = reader.read(piece))
    content.insert(content.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
  return content;
}

TEST_F(TarReaderTest, ReadsMembersOfEverySizePlainAndCompressed) {
  std::vector<tests::TarMember> members;
  for (std::size_t size : {0, 1, 511, 512, 513, 5000})
    members.push_back({.name = "folder/" + std::to_string(size), .content = tests::counting(size)});
  const Bytes archive = tests::tar_bytes(members);
  for (const Bytes& bytes : {archive, tests::gzipped(archive)}) {
    TarReader reader(write(bytes));
    for (const tests::TarMember& member : members) {
      const auto found = reader.next();
      ASSERT_TRUE(found);
      EXPECT_EQ(found->name, member.name);
      EXPECT_EQ(found->bytes, member.content.size());
      EXPECT_TRUE(found->is_file);
      EXPECT_EQ(read_member(reader), member.content);
    }
    EXPECT_FALSE(reader.next());
  }
}

TEST_F(TarReaderTest, GoesPastWhatWasNotRead) {
  TarReader reader(write(tests::tar_bytes({{.name = "a", .content = tests::counting(3000)},
                                           {.name = "b", .content = tests::counting(700)},
                                           {.name = "c", .content = {42}}})));
  EXPECT_EQ(reader.next()->name, "a");
  EXPECT_EQ(reader.next()->name, "b");
  Bytes some(10);
  reader.read(some);
  EXPECT_EQ(reader.next()->name, "c");
  EXPECT_EQ(read_member(reader), Bytes{42});
}

TEST_F(TarReaderTest, TellsFilesFromWhatIsNone) {
  TarReader reader(write(tests::tar_bytes({{.name = "folder/", .type = '5'},
                                           {.name = "link", .type = '2'},
                                           {.name = "notes", .content = tests::counting(30), .type = 'x'},
                                           {.name = "old", .content = {1}, .type = '\0'}})));
  for (const char* name : {"folder/", "link", "notes"}) {
    const auto member = reader.next();
    EXPECT_EQ(member->name, name);
    EXPECT_FALSE(member->is_file);
  }
  EXPECT_TRUE(reader.next()->is_file);
}

TEST_F(TarReaderTest, PutsLongNamesTogether) {
  TarReader reader(write(tests::tar_bytes({{.name = std::string(100, 'n'), .prefix = "long/folder"}})));
  EXPECT_EQ(reader.next()->name, "long/folder/" + std::string(100, 'n'));
}

TEST_F(TarReaderTest, RejectsAnArchiveThatIsCutShortAnywhere) {
  const Bytes whole = tests::tar_bytes({{.name = "a", .content = tests::counting(600)}});
  for (std::size_t size = 0; size < 3 * 512; size += 61)
    EXPECT_THAT(error(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))),
                HasSubstr("download it again"))
        << size;
}

TEST_F(TarReaderTest, RejectsADamagedHeader) {
  const Bytes whole = tests::tar_bytes({{.name = "a", .content = tests::counting(600)}});
  for (std::size_t at : {0, 130, 156, 400}) {
    Bytes damaged = whole;
    damaged[at] ^= 1;
    EXPECT_THAT(error(damaged), HasSubstr("damaged")) << at;
  }
}

TEST_F(TarReaderTest, RejectsASizeThatIsNoOctalNumber) {
  for (const std::uint8_t first : {std::uint8_t{'9'}, std::uint8_t{0x80}}) {
    Bytes archive = tests::tar_bytes({{.name = "a", .content = {1}}});
    const int change = first - archive[124];
    archive[124] = first;
    // The sum is made right again, so that the size is what is wrong.
    const std::string sum(archive.begin() + 148, archive.begin() + 154);
    char text[8];
    std::snprintf(text, sizeof text, "%06lo", std::stoul(sum, nullptr, 8) + static_cast<unsigned long>(change));
    std::copy_n(text, 6, archive.begin() + 148);
    EXPECT_THAT(error(archive), HasSubstr("an invalid number"));
  }
}

}  // namespace
}  // namespace gradring::data
