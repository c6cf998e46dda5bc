// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/tensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/train/records/checkpoint/one_tensor.h"

namespace gradring::train {
namespace {

using testing::HasSubstr;

std::vector<TensorRecord> read_one(const OneTensor& w) {
  tests::MemoryDisk disk;
  write_archive(disk, pickle_of(w), w);
  return read_pt(*disk.open("/a"), "/a");
}

std::string why_pt_refused(const std::string& pickle) {
  tests::MemoryDisk disk;
  write_archive(disk, pickle);
  return refusal([&] { read_pt(*disk.open("/a"), "/a"); });
}

/// The indices in the storage of the elements that were read: the first byte of each, divided by 4.
std::vector<int> elements_of(const OneTensor& w) {
  std::vector<int> elements;
  const auto records = read_one(w);
  for (std::size_t i = 0; i < records.at(0).bytes.size(); i += 4)
    elements.push_back(std::to_integer<int>(records.at(0).bytes[i]) / 4);
  return elements;
}

TEST(Pt, RoundTripsAwkwardShapes) {
  tests::MemoryDisk disk;
  const auto tensors = awkward_tensors();
  write_pt(disk, "/a", tensors);
  EXPECT_EQ(read_pt(*disk.open("/a"), "/a"), tensors);
  write_pt(disk, "/b", tensors);
  EXPECT_EQ(disk.bytes_of("/a"), disk.bytes_of("/b"));
}

TEST(Pt, RoundTripsEmptyStateDict) {
  tests::MemoryDisk disk;
  write_pt(disk, "/a", {});
  EXPECT_TRUE(read_pt(*disk.open("/a"), "/a").empty());
}

TEST(Pt, HonoursStrides) {
  EXPECT_EQ(elements_of({}), (std::vector{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements_of({.shape = {3, 2}, .strides = {1, 3}}), (std::vector{0, 3, 1, 4, 2, 5})) << "transposed";
  EXPECT_EQ(elements_of({.offset = 1, .shape = {2}, .strides = {3}}), (std::vector{1, 4})) << "a column";
  EXPECT_EQ(elements_of({.offset = 5, .shape = {}, .strides = {}}), (std::vector{5}));
  EXPECT_EQ(elements_of({.shape = {2, 0, 3}, .strides = {3, 3, 1}}), (std::vector<int>{}));
  constexpr std::int64_t kAnything = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(elements_of({.shape = {2, 1, 3}, .strides = {3, kAnything, 1}}), (std::vector{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements_of({.shape = {2, 2}, .strides = {0, 1}}), (std::vector{0, 1, 0, 1})) << "expanded";
  EXPECT_EQ(elements_of({.offset = 4, .shape = {3, 3}, .strides = {0, 0}}), std::vector<int>(9, 4)) << "one element";
}

TEST(Pt, RejectsTensorsBeyondTheirStorage) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const OneTensor cases[] = {
      {.shape = {2, 4}, .strides = {3, 1}},
      {.offset = 1},
      {.offset = 6, .shape = {}, .strides = {}},
      {.offset = -1},
      {.strides = {-3, 1}},
      {.shape = {-2, 3}},
      {.strides = {3}},
      {.shape = {kHuge, 4}},
      {.strides = {kHuge, kHuge}},
      {.shape = {kHuge, kHuge, kHuge}, .strides = {0, 0, 0}},
      {.offset = kHuge, .shape = {1}, .strides = {1}},
      {.offset = 0, .shape = std::vector<std::int64_t>(65, 1), .strides = std::vector<std::int64_t>(65, 1)},
  };
  for (const OneTensor& w : cases) EXPECT_NE(refusal([&] { read_one(w); }), "") << shape_text(w.shape);
  EXPECT_THAT(refusal([&] { read_one({.storage_elements = 7}); }), HasSubstr("24 bytes for the 7 elements"));
  EXPECT_THAT(refusal([&] { read_one({.storage_elements = -1}); }), HasSubstr("'w' without a storage"));
  EXPECT_THAT(refusal([&] { read_one({.storage_elements = kHuge}); }), HasSubstr("storage of 24 bytes"));
  EXPECT_THAT(refusal([&] { read_one({.type = "DoubleStorage"}); }), HasSubstr("24 bytes for the 6 elements"));
  EXPECT_THAT(refusal([&] { read_one({.record = "1"}); }), HasSubstr("lacks its record data/1"));
  EXPECT_THAT(refusal([&] { read_one({.record = "../../etc/passwd"}); }), HasSubstr("lacks its record"));
  EXPECT_THAT(refusal([&] { read_one({.shape = {1 << 30}, .strides = {0}}); }), HasSubstr("four times the size"));
  EXPECT_THAT(refusal([&] { read_one({.byteorder = "middle"}); }), HasSubstr("the byte order 'middle'"));
}

TEST(Pt, RejectsOtherObjectsByName) {
  EXPECT_THAT(why_pt_refused("cos\nsystem\n."), HasSubstr("'os.system'"));
  EXPECT_THAT(why_pt_refused("K\1."), HasSubstr("does not hold a dictionary"));
  EXPECT_THAT(why_pt_refused(std::string("}X\1\0\0\0wK\1s.", 11)), HasSubstr("'w', which is not a tensor"));
  EXPECT_THAT(why_pt_refused("}K\1K\1s."), HasSubstr("invalid text for a name"));
  EXPECT_THAT(why_pt_refused(std::string("}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n)Rs.", 44)),
              HasSubstr("'w', which is not a tensor"));
  EXPECT_THAT(why_pt_refused(std::string("}(X\1\0\0\0wNX\1\0\0\0wNu.", 18)), HasSubstr("'w' twice"));
}

TEST(Pt, FindsWrappedStateDict) {
  tests::MemoryDisk disk;
  PickleWriter pickle;
  pickle.empty_ordered_dict();
  pickle.mark();
  pickle.text("epoch");
  pickle.integer(3);
  pickle.text("model");
  write_state_dict(pickle, {});
  pickle.end_items();
  write_archive(disk, pickle.finish());
  EXPECT_EQ(read_pt(*disk.open("/a"), "/a").at(0).name, "w");
}

TEST(Pt, RejectsOtherArchives) {
  tests::MemoryDisk disk;
  const auto file = disk.create("/a");
  ZipWriter archive(*file, "/a");
  archive.add("word/document.xml", {});
  archive.finish();
  EXPECT_THAT(refusal([&] { read_pt(*disk.open("/a"), "/a"); }), HasSubstr("without torch.save's data.pkl"));
}

TEST(Pt, RejectsUnsupportedTypesOnWrite) {
  tests::MemoryDisk disk;
  const auto good = counting("a", TensorType::f32, {2});
  EXPECT_THROW(write_pt(disk, "/a", std::vector{good, good}), InvalidArgument);
  EXPECT_THROW(write_pt(disk, "/a", std::vector{counting("a", TensorType::u16, {2})}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::train
