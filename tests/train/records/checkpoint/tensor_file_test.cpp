// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/tensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/train/records/checkpoint/tensors.h"
#include "tests/train/support/memory_disk.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/safetensors.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TensorFile, DetectsFormatByContent) {
  tests::MemoryDisk disk;
  const std::vector<TensorRecord> tensors = {counting("w", TensorType::f32, {2, 3})};
  write_pt(disk, "/a.safetensors", tensors);
  write_safetensors(disk, "/a.pt", plan_safetensors(tensors));
  write_npy(disk, "/w.npy", tensors[0]);
  for (const char* name : {"/a.pt", "/a.safetensors", "/w.npy"})
    EXPECT_EQ(read_tensor_file(disk, name), tensors) << name;
}

TEST(TensorFile, RejectsOtherFiles) {
  tests::MemoryDisk disk;
  write_new_file(disk, "/empty", "");
  write_new_file(disk, "/text", "weights, weights, weights");
  EXPECT_THAT(refusal([&] { read_tensor_file(disk, "/empty"); }), HasSubstr("/empty is empty"));
  EXPECT_THAT(refusal([&] { read_tensor_file(disk, "/text"); }),
              HasSubstr("/text is not a valid safetensors file: its header has"));
  EXPECT_THAT(refusal([&] { read_tensor_file(disk, "/none"); }), HasSubstr("/none is missing"));
}

TEST(TensorFile, NamesPlainPickle) {
  using namespace std::string_literals;
  tests::MemoryDisk disk;
  write_new_file(disk, "/two.pkl", "\x80\x02}q\0X\x01\0\0\0wq\x01]q\x02(G?\xf0\0\0\0\0\0\0es."s);
  write_new_file(disk, "/four.pkl", "\x80\x04\x95\x11\0\0\0\0\0\0\0}\x94\x8c\x01w\x94G?\xf0\0\0\0\0\0\0s."s);
  for (const char* name : {"/two.pkl", "/four.pkl"})
    EXPECT_THAT(refusal([&] { read_tensor_file(disk, name); }), HasSubstr("is a Python pickle")) << name;
}

TEST(TensorFile, NamesCommonWrongFiles) {
  using namespace std::string_literals;
  const std::pair<std::string, std::string> files[] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "is a Git LFS pointer to a file; fetch"},
      {"\x1f\x8b\x08\0\0\0\0\0\0\x03"s + std::string(100, 'x'), "is compressed with gzip; decompress"},
      {"<!DOCTYPE html>\n<html>\n", "is a web page; download"},
      {"\n <HTML><head>", "is a web page; download"},
      {"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>", "is an XML document"},
      {"", "is empty; copy"}};
  for (const auto& [text, found] : files) {
    tests::MemoryDisk disk;
    write_new_file(disk, "/weights", text);
    EXPECT_THAT(refusal([&] { read_tensor_file(disk, "/weights"); }), HasSubstr("/weights " + found));
  }
}

TEST(TensorFile, DistinguishesSafetensorsFromPickle) {
  tests::MemoryDisk disk;
  TensorRecord tensor = counting("w", TensorType::f32, {1});
  const auto write = [&](std::size_t name_bytes) {
    tensor.name.assign(name_bytes, 'w');
    const std::string path = "/" + std::to_string(name_bytes);
    write_safetensors(disk, path, plan_safetensors({&tensor, 1}));
    return path;
  };
  std::size_t name_bytes = 1;
  std::string path = write(name_bytes);
  const auto header = [&] {
    return std::to_integer<int>(disk.bytes_of(path)[0]) + 256 * std::to_integer<int>(disk.bytes_of(path)[1]);
  };
  while (header() < 0x280) path = write(++name_bytes);
  ASSERT_EQ(header(), 0x280) << "begins as a pickle of protocol 2 does";
  EXPECT_EQ(read_tensor_file(disk, path).front().name, tensor.name);
}

TEST(TensorDifferences, NamesDifferences) {
  using enum TensorType;
  const std::vector<TensorInfo> expected = {{"a", f32, {2}}, {"b", f32, {2, 3}}, {"c", f32, {}}};
  const std::vector<TensorInfo> found = {{"d", f32, {}}, {"b", f32, {3, 2}}, {"c", f16, {}}};
  const TensorDifferences differences = compare_tensors(expected, found);
  EXPECT_THAT(differences.missing, ElementsAre("a"));
  EXPECT_THAT(differences.unexpected, ElementsAre("d"));
  ASSERT_EQ(differences.other_shape.size(), 1u);
  EXPECT_FALSE(differences.empty());
  EXPECT_EQ(differences.to_string(),
            "lacks 'a'; has 'd', which the model lacks; has 'b' of shape [3, 2], expected [2, 3]");
  EXPECT_TRUE(compare_tensors(expected, expected).empty());
  EXPECT_EQ(compare_tensors(expected, expected).to_string(), "");
}

TEST(TensorDifferences, NamesAtMostFive) {
  std::vector<TensorInfo> expected;
  for (int i = 0; i < 9; ++i) expected.push_back({std::to_string(i), TensorType::f32, {}});
  EXPECT_EQ(compare_tensors(expected, {}).to_string(), "lacks '0', '1', '2', '3', '4' and 4 more");
}

}  // namespace
}  // namespace gradring::train
