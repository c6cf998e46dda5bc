// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/zip_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/train/records/checkpoint/tensors.h"
#include "tests/train/support/memory_disk.h"
#include "train/records/checkpoint/file_system.h"

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

std::string why_zip_refused(const std::string& archive) {
  return refusal([&] {
    const MemoryFile file(bytes_of(archive));
    const ZipReader reader(file, "a.pt");
    for (const ZipEntry& entry : reader.entries()) reader.read(entry);
  });
}

TEST(ZipArchive, RoundTripsAndAlignsBytes) {
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

TEST(ZipArchive, AllowsTrailingComment) {
  std::string archive = archive_of({{"a", "x"}});
  archive[archive.size() - 2] = 5;
  EXPECT_EQ(why_zip_refused(archive + "hello"), "");
  EXPECT_THAT(why_zip_refused(archive + "hell"), HasSubstr("not a zip archive"));
}

TEST(ZipArchive, RejectsInvalidArchives) {
  const std::string good = archive_of({{"a", "first"}, {"b", "second"}});
  const std::size_t end = good.size() - zip::kEndBytes;
  const std::size_t directory = good.find(zip::kDirectoryEntry);
  const auto with = [&](std::size_t at, const std::string& bytes) {
    return std::string(good).replace(at, bytes.size(), bytes);
  };
  const auto cut = [&](std::size_t bytes) { return good.substr(0, bytes); };
  ASSERT_EQ(why_zip_refused(good), "");
  const std::pair<std::string, std::string> cases[] = {
      {"", "not a zip archive"},
      {"PK\5\6", "not a zip archive"},
      {cut(good.size() - 1), "not a zip archive"},
      {cut(directory), "not a zip archive"},
      {with(end + 10, std::string("\3\0", 2)), "its directory has 2 entries, its end record says 3"},
      {with(end + 16, "\xff\xff\xff\x7f"), "reaches beyond"},
      {with(end + 12, "\xff\xff\xff\x7f"), "reaches beyond"},
      {with(end + 12, std::string("\x10\0\0\0", 4)), "directory is invalid"},
      {with(directory, "XX"), "directory is invalid"},
      {with(directory + 28, "\xff\xff"), "directory is invalid"},
      {with(directory + 8, "\1"), "encrypted"},
      {with(directory + 10, "\10"), "compressed"},
      {with(directory + 20, "\x9"), "contradicts itself about the size"},
      {with(directory + 42, "\xff\xff\xff\xff"), "contradicts itself about the size"},
      {with(directory + 42, "\xff\xff\xff\x7f"), "lies beyond its end"},
      {with(directory + 42, "\3"), "' is invalid"},
      {with(directory + 46, "c"), "another name"},
      {with(directory + 16, "\1\2\3\4"), "CRC-32"},
      {with(good.find("first"), "F"), "CRC-32"},
      {with(0, "XX"), "' is invalid"},
      {with(28, "\xff\xff"), "' is invalid"},
      {archive_of({{"a", "x"}, {"a", "y"}}), "two entries"},
  };
  for (const auto& [archive, found] : cases) EXPECT_THAT(why_zip_refused(archive), HasSubstr(found));
}

TEST(ZipArchive, RejectsOverlappingEntries) {
  std::string archive = archive_of({{"a", "first"}, {"b", "second"}});
  const std::size_t first = archive.find(zip::kDirectoryEntry);
  const std::size_t second = archive.find(zip::kDirectoryEntry, first + 4);
  archive.replace(second, zip::kDirectoryEntryBytes, archive.substr(first, zip::kDirectoryEntryBytes));
  archive.replace(archive.find('b', second), 1, "a");
  EXPECT_THAT(why_zip_refused(archive), HasSubstr("two entries"));
}

TEST(ZipArchive, WritesSameBytesAtAnyTime) { EXPECT_EQ(archive_of({{"a", "first"}}), archive_of({{"a", "first"}})); }

}  // namespace
}  // namespace gradring::train
