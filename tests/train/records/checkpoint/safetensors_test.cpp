// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "tests/support/allocated_bytes.h"
#include "tests/support/safetensors.h"
#include "tests/support/temp_folder.h"
#include "tests/train/records/checkpoint/tensors.h"
#include "tests/train/support/memory_disk.h"
#include "train/records/checkpoint/file_system.h"

namespace gradring::train {
namespace {

using testing::HasSubstr;

/// A file with the given header and some data.
std::string file_of(const std::string& header, std::size_t data_bytes = 0) {
  const std::uint64_t bytes = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &bytes, 8);
  return file + header + std::string(data_bytes, 'x');
}

std::string why_safetensors_refused(const std::string& file) {
  return refusal(
      [&] { SafetensorsReader(std::make_unique<MemoryFile>(std::as_bytes(std::span(file))), "hostile.safetensors"); });
}

TEST(Safetensors, RoundTripsAwkwardShapes) {
  tests::MemoryDisk disk;
  const auto tensors = awkward_tensors();
  write_safetensors(disk, "/a", plan_safetensors(tensors, {{"step", "7"}}));
  const SafetensorsReader reader(disk.open("/a"), "/a");
  EXPECT_EQ(reader.metadata(), (std::map<std::string, std::string>{{"format", "pt"}, {"step", "7"}}));
  ASSERT_EQ(reader.tensors().size(), tensors.size());
  for (const TensorRecord& record : read_safetensors(disk, "/a")) {
    const auto original = std::ranges::find(tensors, record.name, &TensorRecord::name);
    ASSERT_NE(original, tensors.end());
    EXPECT_EQ(record, *original) << record.name;
  }
}

TEST(Safetensors, WritesSameBytesInAnyOrder) {
  tests::MemoryDisk disk;
  auto tensors = awkward_tensors();
  write_safetensors(disk, "/a", plan_safetensors(tensors));
  std::ranges::reverse(tensors);
  write_safetensors(disk, "/b", plan_safetensors(tensors));
  EXPECT_EQ(disk.bytes_of("/a"), disk.bytes_of("/b"));
}

TEST(Safetensors, AlignsEveryTensor) {
  const auto tensors = awkward_tensors();
  const SafetensorsPlan plan = plan_safetensors(tensors);
  EXPECT_EQ(plan.head.size() % 8, 0u);
  std::size_t offset = plan.head.size();
  for (const TensorRecord* tensor : plan.order) {
    EXPECT_EQ(offset % (names_of(tensor->type).bits / 8), 0u) << tensor->name;
    offset += tensor->bytes.size();
  }
}

TEST(Safetensors, IsReadByAnotherReader) {
  const tests::TempFolder folder;
  PosixFileSystem files;
  const auto tensors = awkward_tensors();
  write_safetensors(files, folder.path() / "a", plan_safetensors(tensors));
  const auto stored = tests::read_safetensors(folder.path() / "a");
  ASSERT_EQ(stored.size(), tensors.size());
  for (const TensorRecord& tensor : tensors) {
    EXPECT_EQ(stored.at(tensor.name).dtype, names_of(tensor.type).safetensors);
    EXPECT_EQ(stored.at(tensor.name).shape, tensor.shape);
    EXPECT_EQ(stored.at(tensor.name).bytes, tensor.bytes);
  }
}

/// PyTorch and NumPy have up to 64.
TEST(Safetensors, RoundTripsManyExtents) {
  tests::MemoryDisk disk;
  const std::vector tensors = {counting("a", TensorType::f32, std::vector<std::int64_t>(64, 1))};
  write_safetensors(disk, "/a", plan_safetensors(tensors));
  EXPECT_EQ(read_safetensors(disk, "/a"), tensors);
}

TEST(Safetensors, RoundTripsNoTensors) {
  tests::MemoryDisk disk;
  write_safetensors(disk, "/a", plan_safetensors({}));
  EXPECT_TRUE(read_safetensors(disk, "/a").empty());
  EXPECT_EQ(why_safetensors_refused(file_of("{}")), "");
  EXPECT_EQ(why_safetensors_refused(file_of("{}   ")), "");
}

TEST(Safetensors, ReadsFilesOfTheReference) {
  PosixFileSystem files;
  const auto path = std::filesystem::path(GRADRING_GOLDEN_DIR) / "convnet_init_seed0.safetensors";
  const auto stored = tests::read_safetensors(path);
  const auto records = read_safetensors(files, path);
  ASSERT_EQ(records.size(), stored.size());
  for (const TensorRecord& record : records) EXPECT_EQ(record.bytes, stored.at(record.name).bytes);
}

TEST(Safetensors, RejectsInvalidTensorsOnWrite) {
  const auto good = counting("a", TensorType::f32, {2});
  auto short_one = good;
  short_one.bytes.pop_back();
  auto odd_bits = counting("a", TensorType::u8, {1});
  odd_bits.type = TensorType::f4;
  EXPECT_THROW(plan_safetensors(std::vector{good, good}), InvalidArgument);
  EXPECT_THROW(plan_safetensors(std::vector{short_one}), InvalidArgument);
  EXPECT_THROW(plan_safetensors(std::vector{odd_bits}), InvalidArgument);
  for (const char* name : {"a\nb", "\x7f", "__metadata__", "\xff"})
    EXPECT_THROW(plan_safetensors(std::vector{counting(name, TensorType::f32, {})}), InvalidArgument) << name;
}

struct BadFile {
  std::string file;
  std::string found;
};

TEST(Safetensors, RejectsInvalidFiles) {
  const std::string a = R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  const auto entry = [](const std::string& fields) { return file_of("{\"a\":{" + fields + "}}", 2); };
  ASSERT_EQ(why_safetensors_refused(file_of("{" + a + "}", 2)), "");
  const BadFile cases[] = {
      {"", "shorter than 8"},
      {"1234567", "shorter than 8"},
      {std::string(8, '\0'), "header has 0 bytes"},
      {std::string("\3\0\0\0\0\0\0\0{}", 10), "header has 3 bytes, in a file of 10"},
      {std::string(8, '\xff') + "{}", "header has 18446744073709551615 bytes"},
      {file_of("[]"), "does not begin with '{'"},
      {file_of(" {}"), "does not begin with '{'"},
      {file_of("\xef\xbb\xbf{}"), "does not begin with '{'"},
      {file_of("{}\n"), "padded with something other"},
      {file_of(std::string("{}\0}", 4)), "zero byte"},
      {file_of("{}{}"), "not valid JSON at byte"},
      {file_of("{"), "padded with something other"},
      {file_of("{a}"), "not valid JSON at byte"},
      {file_of("{\"\xff\":{}}"), "not valid JSON at byte"},
      {file_of("{" + a + "," + a + "}", 2), "the tensor 'a' twice"},
      {file_of(R"({"__metadata__":{},"__metadata__":{}})"), "'__metadata__' twice"},
      {file_of(R"({"__metadata__":{"k":"1","k":"2"}})"), "'k' twice in __metadata__"},
      {file_of(R"({"__metadata__":{"k":1}})"), "its __metadata__ has the number 1, expected text"},
      {file_of(R"({"__metadata__":{"k":{}}})"), "has an object, expected"},
      {file_of(R"({"__metadata__":[]})"), "has a list, expected"},
      {file_of(R"({"a":null})"), "has null, expected an object"},
      {file_of(R"({"a":[]})"), "has a list, expected"},
      {file_of(R"({"a\n":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2), "control characters"},
      {file_of(R"({"a\u0000":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2), "control characters"},
      {entry(R"("dtype":"U8","shape":[2])"), "lacks"},
      {entry(R"("dtype":"U8","data_offsets":[0,2])"), "lacks"},
      {entry(R"("shape":[2],"data_offsets":[0,2])"), "lacks"},
      {entry(R"("dtype":"U8","shape":[2],"data_offsets":[0,2],"more":1)"), "the key 'more'"},
      {entry(R"("dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2])"), "'dtype' twice"},
      {entry(R"("dtype":"U8","shape":[2],"data_offsets":[0])"), "lacks"},
      {entry(R"("dtype":"U8","shape":[2],"data_offsets":[0,2,2])"), "more than two"},
      {entry(R"("dtype":"U8","shape":[2],"data_offsets":{})"), "has an object, expected"},
      {entry(R"("dtype":"U9","shape":[2],"data_offsets":[0,2])"), "unknown type 'U9'"},
      {entry(R"("dtype":"","shape":[2],"data_offsets":[0,2])"), "unknown type ''"},
      {entry(R"("dtype":8,"shape":[2],"data_offsets":[0,2])"), "the number 8"},
      {entry(R"("dtype":"U8","shape":["2"],"data_offsets":[0,2])"), "the text '2'"},
      {entry(R"("dtype":"U8","shape":[[2]],"data_offsets":[0,2])"), "has a list, expected"},
      {entry(R"("dtype":"U8","shape":[2.0],"data_offsets":[0,2])"), "'2.0'"},
      {entry(R"("dtype":"U8","shape":[-2],"data_offsets":[0,2])"), "-2"},
      {entry(R"("dtype":"U8","shape":[true],"data_offsets":[0,2])"), "true or false"},
      {entry(R"("dtype":"U8","shape":[281474976710656],"data_offsets":[0,2])"), "above 2^48"},
      {entry(R"("dtype":"U8","shape":[18446744073709551618],"data_offsets":[0,2])"), "'18446744073709551618'"},
      {entry(R"("dtype":"U8","shape":[281474976710655,281474976710655],"data_offsets":[0,2])"), "bytes 0 to 2"},
      {entry(R"("dtype":"U8","shape":[4294967296,4294967296,2],"data_offsets":[0,2])"), "bytes 0 to 2"},
      {entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,2])"), "has shape [2] of F32, but bytes 0 to 2"},
      {entry(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])"), "bytes 0 to 2"},
      {entry(R"("dtype":"U8","shape":[2],"data_offsets":[2,0])"), "bytes 2 to 0"},
      {entry(R"("dtype":"U8","shape":[1],"data_offsets":[0,1])"), "its tensors have 1 bytes, its data has 2"},
      {entry(R"("dtype":"U8","shape":[3],"data_offsets":[0,3])"), "its tensors have 3 bytes, its data has 2"},
      {entry(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])"), "has a hole at byte 0"},
      {file_of("{" + a + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3), "overlap at byte 1"},
      {file_of("{" + a + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2), "overlap at byte 0"},
  };
  for (const BadFile& bad : cases)
    EXPECT_THAT(why_safetensors_refused(bad.file), HasSubstr(bad.found)) << bad.file.substr(0, 200);
}

/// The largest header that is accepted: `begin`, numbered entries, `end`.
std::string numbered(const std::string& begin, const std::function<std::string(int)>& entry, const std::string& end,
                     int most = std::numeric_limits<int>::max()) {
  std::string text = begin;
  for (int i = 0; i < most && text.size() + 100 < kLargestHeaderBytes; ++i) text += (i ? "," : "") + entry(i);
  return file_of(text + end);
}

std::string empty_tensor(int number) {
  return "\"" + std::to_string(number) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
}

TEST(Safetensors, BoundsMemoryOfHostileHeaders) {
  constexpr std::size_t kBound = 64u << 20;
  constexpr std::uint64_t kAll = kLargestHeaderBytes - 10;
  const std::pair<const char*, std::string> cases[] = {
      {"a name of 4 MB", file_of("{\"" + std::string(kAll, 'a') + "\":{}}")},
      {"escapes", file_of("{\"" + std::string(kAll, '\\') + "\":{}}")},
      {"a number without end", file_of(R"({"a":{"dtype":"U8","shape":[)" + std::string(1u << 21, '1') + "]}}")},
      {"lists in lists", file_of(R"({"a":)" + std::string(1u << 21, '[') + std::string(1u << 20, ']') + "}")},
      {"many extents", numbered(R"({"a":{"shape":[)", [](int) { return "1"; }, "]}}")},
      {"much metadata",
       numbered(R"({"__metadata__":{)", [](int i) { return "\"" + std::to_string(i) + "\":\"\""; }, "}}")},
      {"many empty tensors", numbered("{", empty_tensor, "}")},
      {"a large header", file_of("{}" + std::string(kLargestHeaderBytes, ' '))},
      {"a header of 2^48 bytes", std::string("\0\0\0\0\0\0\1\0{}", 10)},
  };
  for (const auto& [name, file] : cases) {
    const std::size_t before = tests::allocated_bytes();
    tests::reset_peak_allocated_bytes();
    EXPECT_NE(why_safetensors_refused(file), "") << name;
    EXPECT_LT(tests::peak_allocated_bytes() - before, kBound) << name;
  }
}

TEST(Safetensors, BoundsMemoryOfLargestHeader) {
  const std::string file = numbered("{", empty_tensor, "}", 65'536);
  const std::size_t before = tests::allocated_bytes();
  tests::reset_peak_allocated_bytes();
  EXPECT_EQ(why_safetensors_refused(file), "");
  EXPECT_LT(tests::peak_allocated_bytes() - before, 64u << 20);
}

}  // namespace
}  // namespace gradring::train
