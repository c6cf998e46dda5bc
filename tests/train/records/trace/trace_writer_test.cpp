// SPDX-License-Identifier: Apache-2.0
#include "train/records/trace/trace_writer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/files/byte_source.h"
#include "tests/data/support/message_of.h"
#include "tests/support/allocated_bytes.h"
#include "tests/support/json.h"
#include "tests/support/temp_folder.h"
#include "train/records/trace/trace_file.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

/// The text of a compressed file, by the reader of data sets.
std::string unpacked(const std::filesystem::path& path) {
  const auto source = data::open_plain_or_gzip(path);
  std::string text;
  std::vector<std::uint8_t> part(1 << 16);
  while (const std::size_t bytes = source->read(part)) text.append(part.begin(), part.begin() + std::ptrdiff_t(bytes));
  return text;
}

/// A text that compresses badly, with `bytes` bytes.
std::string noise(std::size_t bytes) {
  std::string text(bytes, '\0');
  std::uint32_t state = 1;
  for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

TEST(GzipStream, GivesBackPartsOfAnySize) {
  const tests::TempFolder folder;
  const std::string text = noise(300'000);
  std::string packed;
  std::size_t largest = 0;
  GzipStream stream([&](std::string_view bytes) {
    packed += bytes;
    largest = std::max(largest, bytes.size());
  });
  const std::size_t sizes[] = {0, 1, 65'535, 65'536, 100'000};
  std::size_t at = 0;
  for (const std::size_t size : sizes) stream.write(std::string_view(text).substr(at, size)), at += size;
  stream.write(std::string_view(text).substr(at));
  stream.finish();
  folder.write("packed.gz", tests::Bytes(packed.begin(), packed.end()));
  EXPECT_EQ(unpacked(folder.path() / "packed.gz"), text);
  EXPECT_LE(largest, 65'536u) << "is passed on in parts";
}

TEST(TraceWriter, WritesOneJsonOfAllRanks) {
  const tests::TempFolder folder;
  for (const char* name : {"t.json", "t.json.gz"}) {
    const std::filesystem::path path = folder.path() / name;
    TraceWriter writer(path);
    for (int rank = 0; rank < 3; ++rank)
      writer.add({.events = R"({"ph":"M","pid":)" + std::to_string(rank) + "}", .clock = R"({"offset_us":0})"});
    EXPECT_FALSE(std::filesystem::exists(path)) << "before it is complete";
    writer.finish({.version = "1", .command = {"gradring", "\xff"}, .ranks = 3, .missing_ranks = {}});
    const auto json = tests::parse_json(unpacked(path));
    EXPECT_THAT(json.at("traceEvents"), SizeIs(3));
    EXPECT_EQ(json.at("traceEvents").at(2).at("pid"), 2);
    EXPECT_THAT(json.at("metadata").at("clocks"), SizeIs(3));
    EXPECT_EQ(json.at("metadata").at("ranks"), 3);
  }
}

TEST(TraceWriter, KeepsNoEventsInMemory) {
  const tests::TempFolder folder;
  const RankPart part{.events = noise(4 << 20), .clock = "{}"};
  for (const char* name : {"t.json", "t.json.gz"}) {
    const std::size_t before = tests::allocated_bytes();
    tests::reset_peak_allocated_bytes();
    TraceWriter writer(folder.path() / name);
    for (int rank = 0; rank < 4; ++rank) writer.add(part);
    writer.finish({.ranks = 4});
    EXPECT_LT(tests::peak_allocated_bytes() - before, 1u << 20) << name;
  }
}

TEST(TraceFile, IsReadWithoutKeepingItsText) {
  const tests::TempFolder folder;
  const std::filesystem::path path = folder.path() / "t.json.gz";
  {
    TraceWriter writer(path);
    std::string events = R"({"ph":"X","pid":0,"tid":1,"cat":"step","name":"s","ts":1.5,"dur":2,"args":{"step":7}})";
    for (int i = 0; i < 100'000; ++i) events += R"(,{"ph":"s","id":1,"pid":0,"tid":1,"name":"bucket","ts":1.0})";
    writer.add({.events = events, .clock = R"({"rank":0,"accuracy_us":0,"dropped_events":0})"});
    writer.finish({});
  }
  const std::size_t before = tests::allocated_bytes();
  tests::reset_peak_allocated_bytes();
  const TraceFile file = read_trace(std::span(&path, 1));
  EXPECT_LT(tests::peak_allocated_bytes() - before, 1u << 20);
  ASSERT_EQ(file.slices.size(), 1u);
  EXPECT_EQ(file.slices[0].step, 7);
  EXPECT_EQ(file.slices[0].begin, 1500);
}

TEST(TraceFile, NamesTheByteWhereATruncatedOneEnds) {
  const tests::TempFolder folder;
  const std::filesystem::path path = folder.write("t.json", tests::Bytes{'{', '"', 'a', '"'});
  EXPECT_THAT(tests::message_of<data::DataError>([&] { read_trace(std::span(&path, 1)); }),
              HasSubstr("t.json: is not valid JSON at byte 5; use"));
}

TEST(TraceWriter, NamesPartsByRank) {
  EXPECT_EQ(part_of("a/t.json", 3), "a/t.rank3.json");
  EXPECT_EQ(part_of("t.x.json.gz", 1), "t.x.rank1.json.gz");
  EXPECT_EQ(part_of("t", 1), "t.rank1");
}

}  // namespace
}  // namespace gradring::train
