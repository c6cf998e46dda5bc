// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/zip_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/train/checkpoint/tensors.h"
#include "tests/train/support/memory_disk.h"
#include "train/checkpoint/file_io.h"
#include "train/checkpoint/memory_file.h"
#include "train/checkpoint/zip_format.h"

namespace gradring::train {
namespace {

using testing::HasSubstr;

std::string archive_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  tests::MemoryDisk disk;
  const auto file = disk.create("/a");
  ZipWriter writer(*file, "/a");
  for (const auto& [name, text] : entries) writer.add(name, bytes_of(text));
  writer.finish();
  const auto& bytes = disk.bytes_of("/a");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string why_refused(const std::string& archive) {
  return refusal([&] {
    const MemoryFile file(bytes_of(archive));
    const ZipReader reader(file, "a.pt");
    for (const ZipEntry& entry : reader.entries()) reader.read(entry);
  });
}

TEST(ZipArchive, GoesRoundAndAlignsBytes) {
  const std::vector<std::pair<std::string, std::string>> entries = {
      {"archive/data.pkl", "x"}, {"archive/data/0", ""}, {"archive/data/1", std::string(1000, 'y')}, {"v", "3\n"}};
  const std::string archive = archive_of(entries);
  const MemoryFile file(bytes_of(archive));
  const ZipReader reader(file, "a.pt");
  ASSERT_EQ(reader.entries().size(), entries.size());
  for (const auto& [name, text] : entries) {
    const ZipEntry* entry = reader.find(name);
    ASSERT_TRUE(entry) << name;
    EXPECT_EQ(entry->begin % 64, 0u) << name;
    const auto bytes = reader.read(*entry);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), text);
  }
  EXPECT_EQ(reader.find("archive"), nullptr);
}

TEST(ZipArchive, MayEndInAComment) {
  std::string archive = archive_of({{"a", "x"}});
  archive[archive.size() - 2] = 5;
  EXPECT_EQ(why_refused(archive + "hello"), "");
  EXPECT_THAT(why_refused(archive + "hell"), HasSubstr("is no zip archive"));
}

TEST(ZipArchive, RefusesWhatIsDamagedOrHostile) {
  const std::string good = archive_of({{"a", "first"}, {"b", "second"}});
  const std::size_t end = good.size() - zip::kEndBytes;
  const std::size_t directory = good.find(zip::kDirectoryEntry);
  const auto with = [&](std::size_t at, const std::string& bytes) {
    return std::string(good).replace(at, bytes.size(), bytes);
  };
  const auto cut = [&](std::size_t bytes) { return good.substr(0, bytes); };
  ASSERT_EQ(why_refused(good), "");
  const std::pair<std::string, std::string> cases[] = {
      {"", "no zip archive"},
      {"PK\5\6", "no zip archive"},
      {cut(good.size() - 1), "no zip archive"},
      {cut(directory), "no zip archive"},
      {with(end + 10, std::string("\3\0", 2)), "another length"},
      {with(end + 16, "\xff\xff\xff\x7f"), "reaches beyond"},
      {with(end + 12, "\xff\xff\xff\x7f"), "reaches beyond"},
      {with(end + 12, std::string("\x10\0\0\0", 4)), "broken directory"},
      {with(directory, "XX"), "broken directory"},
      {with(directory + 28, "\xff\xff"), "broken directory"},
      {with(directory + 8, "\1"), "encrypted"},
      {with(directory + 10, "\10"), "compressed"},
      {with(directory + 20, "\x9"), "no clear size"},
      {with(directory + 42, "\xff\xff\xff\xff"), "no clear size"},
      {with(directory + 42, "\xff\xff\xff\x7f"), "beyond its end"},
      {with(directory + 42, "\3"), "broken entry"},
      {with(directory + 46, "c"), "otherwise"},
      {with(directory + 16, "\1\2\3\4"), "checksum"},
      {with(good.find("first"), "F"), "checksum"},
      {with(0, "XX"), "broken entry"},
      {with(28, "\xff\xff"), "broken entry"},
      {archive_of({{"a", "x"}, {"a", "y"}}), "two entries"},
  };
  for (const auto& [archive, found] : cases) EXPECT_THAT(why_refused(archive), HasSubstr(found));
}

TEST(ZipArchive, EntriesMayNotOverlap) {
  std::string archive = archive_of({{"a", "first"}, {"b", "second"}});
  const std::size_t first = archive.find(zip::kDirectoryEntry);
  const std::size_t second = archive.find(zip::kDirectoryEntry, first + 4);
  archive.replace(second, zip::kDirectoryEntryBytes, archive.substr(first, zip::kDirectoryEntryBytes));
  archive.replace(archive.find('b', second), 1, "a");
  EXPECT_THAT(why_refused(archive), HasSubstr("two entries"));
}

TEST(ZipArchive, WritesTheSameBytesAtAnyTime) { EXPECT_EQ(archive_of({{"a", "first"}}), archive_of({{"a", "first"}})); }

}  // namespace
}  // namespace gradring::train
