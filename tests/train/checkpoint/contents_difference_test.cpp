// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/contents_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/checkpoint/small_checkpoint.h"

namespace gradring::train {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names_in(const std::vector<DifferentTensor>& tensors) {
  std::vector<std::string> names;
  for (const DifferentTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

TEST(ContentsDifference, IsNoneInAnotherOrder) {
  const auto a = awkward_tensors();
  EXPECT_THAT(different_tensors(a, std::vector(a.rbegin(), a.rend())), IsEmpty());
}

TEST(ContentsDifference, FindsEveryKind) {
  std::vector<TensorRecord> a = {
      counting("same", TensorType::f32, {2}),           counting("bits", TensorType::u8, {3}),
      counting("shape", TensorType::f32, {2, 3}),       counting("gone", TensorType::f32, {1}),
      tensor<float>("type", TensorType::f32, {1}, {1}), counting("complex", TensorType::c64, {1})};
  std::vector<TensorRecord> b = {
      counting("new", TensorType::i8, {1}), tensor<double>("type", TensorType::f64, {1}, {1}), a[0], a[1], a[2], a[5]};
  b[3].bytes[1] ^= std::byte{1};
  b[4].shape = {3, 2};
  b[5].bytes[0] ^= std::byte{1};
  const auto found = different_tensors(a, b);
  EXPECT_THAT(names_in(found), ElementsAre("bits", "shape", "gone", "type", "complex", "new"));
  EXPECT_EQ(found[0].distance->different, 1);
  EXPECT_FALSE(found[1].distance) << "of another shape";
  EXPECT_FALSE(found[2].b);
  EXPECT_EQ(found[3].distance->different, 0) << "the same number, another type";
  EXPECT_FALSE(found[4].distance) << "no plain number";
  EXPECT_FALSE(found[5].a);
}

TEST(ContentsDifference, OfFactsIsByName) {
  Checkpoint a = small_checkpoint(3, 0.5);
  Checkpoint b = small_checkpoint(4);
  a.about["progress"]["seconds"] = 1.5;
  b.about["progress"]["seconds"] = 2.5;
  a.about["settings"] = "lr = 0.1\nseed = 1\n";
  b.about["settings"] = "lr = 0.2\nseed = 1\n";
  b.about["sampler"]["position"] = 321;
  std::vector<std::string> texts;
  for (const DifferentFact& fact : different_facts(a, b)) texts.push_back(fact.what + " " + fact.a + "|" + fact.b);
  EXPECT_THAT(texts, ElementsAre("/sampler/position 320|321", "score 0.5|", "settings: lr 0.1|0.2", "step 3|4"));
  EXPECT_THAT(different_facts(a, a), IsEmpty());
}

}  // namespace
}  // namespace gradring::train
