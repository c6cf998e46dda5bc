// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/tensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/train/checkpoint/tensors.h"
#include "tests/train/support/memory_disk.h"
#include "train/checkpoint/file_io.h"
#include "train/checkpoint/npy.h"
#include "train/checkpoint/pt.h"
#include "train/checkpoint/safetensors.h"
#include "train/checkpoint/tensor_differences.h"

namespace gradring::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TensorFile, IsReadByWhatItHoldsNotByItsName) {
  tests::MemoryDisk disk;
  const std::vector<TensorRecord> tensors = {counting("w", TensorType::f32, {2, 3})};
  write_pt(disk, "/a.safetensors", tensors);
  write_safetensors(disk, "/a.pt", plan_safetensors(tensors));
  write_npy(disk, "/w.npy", tensors[0]);
  for (const char* name : {"/a.pt", "/a.safetensors", "/w.npy"})
    EXPECT_EQ(read_tensor_file(disk, name), tensors) << name;
}

TEST(TensorFile, WhatIsNeitherIsRefused) {
  tests::MemoryDisk disk;
  write_new_file(disk, "/empty", "");
  write_new_file(disk, "/text", "weights, weights, weights");
  EXPECT_THAT(refusal([&] { read_tensor_file(disk, "/empty"); }), HasSubstr("/empty: is shorter than 8 bytes"));
  EXPECT_THAT(refusal([&] { read_tensor_file(disk, "/text"); }), HasSubstr("/text: says that its header has"));
  EXPECT_THAT(refusal([&] { read_tensor_file(disk, "/none"); }), HasSubstr("/none: cannot be opened (No such file"));
}

TEST(TensorDifferences, NamesWhatDiffers) {
  using enum TensorType;
  const std::vector<TensorInfo> expected = {{"a", f32, {2}}, {"b", f32, {2, 3}}, {"c", f32, {}}};
  const std::vector<TensorInfo> found = {{"d", f32, {}}, {"b", f32, {3, 2}}, {"c", f16, {}}};
  const TensorDifferences differences = compare_tensors(expected, found);
  EXPECT_THAT(differences.missing, ElementsAre("a"));
  EXPECT_THAT(differences.unexpected, ElementsAre("d"));
  ASSERT_EQ(differences.other_shape.size(), 1u);
  EXPECT_FALSE(differences.none());
  EXPECT_EQ(differences.to_string(), "lacks 'a'; has, which the model has not, 'd'; has 'b' of [3, 2], not of [2, 3]");
  EXPECT_TRUE(compare_tensors(expected, expected).none());
  EXPECT_EQ(compare_tensors(expected, expected).to_string(), "");
}

TEST(TensorDifferences, AreNotListedWithoutEnd) {
  std::vector<TensorInfo> expected;
  for (int i = 0; i < 9; ++i) expected.push_back({std::to_string(i), TensorType::f32, {}});
  EXPECT_EQ(compare_tensors(expected, {}).to_string(), "lacks '0', '1', '2', '3', '4' and 4 more");
}

}  // namespace
}  // namespace gradring::train
