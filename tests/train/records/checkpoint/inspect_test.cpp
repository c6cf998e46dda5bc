// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "kernels/base/error.h"
#include "kernels/runtime/dtype.h"
#include "tests/train/records/checkpoint/small_checkpoint.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

TensorRecord doubles(const std::vector<double>& values) {
  return tensor("t", TensorType::f64, {static_cast<std::int64_t>(values.size())}, values);
}

TEST(TensorValues, ConvertsEveryNumericType) {
  using enum TensorType;
  EXPECT_THAT(values_of(tensor<float>("t", f32, {2}, {-0.1f, 3})), Optional(ElementsAre(double{-0.1f}, 3)));
  EXPECT_THAT(values_of(tensor<kernels::Half>("t", f16, {1}, {kernels::to_half(0.333f)})),
              Optional(ElementsAre(kernels::to_float(kernels::to_half(0.333f)))));
  EXPECT_THAT(values_of(tensor<kernels::BFloat16>("t", bf16, {1}, {kernels::to_bfloat16(-2.5f)})),
              Optional(ElementsAre(-2.5)));
  EXPECT_THAT(values_of(tensor<std::int8_t>("t", i8, {2}, {-128, 127})), Optional(ElementsAre(-128, 127)));
  EXPECT_THAT(values_of(tensor<std::uint8_t>("t", u8, {1}, {255})), Optional(ElementsAre(255)));
  EXPECT_THAT(values_of(tensor<std::uint8_t>("t", boolean, {2}, {0, 1})), Optional(ElementsAre(0, 1)));
  EXPECT_THAT(values_of(tensor<std::int16_t>("t", i16, {1}, {-300})), Optional(ElementsAre(-300)));
  EXPECT_THAT(values_of(tensor<std::uint16_t>("t", u16, {1}, {65535})), Optional(ElementsAre(65535)));
  EXPECT_THAT(values_of(tensor<std::int32_t>("t", i32, {1}, {-70000})), Optional(ElementsAre(-70000)));
  EXPECT_THAT(values_of(tensor<std::uint32_t>("t", u32, {1}, {4000000000})), Optional(ElementsAre(4e9)));
  EXPECT_THAT(values_of(tensor<std::int64_t>("t", i64, {1}, {-5})), Optional(ElementsAre(-5)));
  EXPECT_THAT(values_of(tensor<std::uint64_t>("t", u64, {1}, {1ull << 63})), Optional(ElementsAre(0x1p63)));
  EXPECT_THAT(values_of(doubles({})), Optional(ElementsAre()));
  for (const TensorType type : {c64, f8_e4m3, f8_e5m2, f8_e8m0})
    EXPECT_EQ(values_of(counting("t", type, {4})), std::nullopt);
}

TEST(TensorStatistics, IgnoresNonFiniteValues) {
  const auto found = statistics_of(doubles({-3, kInfinity, 1, kNoNumber, 5, -kInfinity}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->elements, 6);
  EXPECT_EQ(found->non_finite, 3);
  EXPECT_EQ(found->least, -3);
  EXPECT_EQ(found->most, 5);
  EXPECT_EQ(found->mean, 1);
  EXPECT_NEAR(found->deviation, std::sqrt(32.0 / 3), 1e-12);
}

TEST(TensorStatistics, IsZeroWithoutFiniteValues) {
  for (const auto& values : {std::vector<double>{}, {kNoNumber, kNoNumber}}) {
    const auto found = statistics_of(doubles(values));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->non_finite, found->elements);
    EXPECT_EQ(found->mean, 0);
    EXPECT_EQ(found->deviation, 0);
  }
  EXPECT_EQ(statistics_of(counting("t", TensorType::c64, {2})), std::nullopt);
}

TEST(TensorDistance, IsZeroForEqualTensors) {
  const auto same = distance_between(doubles({1, kNoNumber, 0, kInfinity}), doubles({1, kNoNumber, -0.0, kInfinity}));
  ASSERT_TRUE(same);
  EXPECT_EQ(same->different, 0);
  EXPECT_EQ(same->absolute, 0);
  EXPECT_EQ(same->cosine, 1);
}

TEST(TensorDistance, ReportsLargestDifferences) {
  const auto found = distance_between(doubles({100, 1, 2}), doubles({110, 2, 2}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->different, 2);
  EXPECT_EQ(found->absolute, 10);
  EXPECT_EQ(found->relative, 0.5);
  EXPECT_EQ(found->non_finite, 0);
  EXPECT_NEAR(found->cosine.value(), (11000 + 2 + 4) / std::sqrt(10005.0 * 12108.0), 1e-12);
}

TEST(TensorDistance, HandlesOppositesZerosAndOtherTypes) {
  EXPECT_NEAR(distance_between(doubles({1, 2}), doubles({-1, -2}))->cosine.value(), -1, 1e-12);
  EXPECT_EQ(distance_between(doubles({1}), doubles({-1}))->relative, 2);
  EXPECT_EQ(distance_between(doubles({0, 0}), doubles({0, 1}))->cosine, 0);
  EXPECT_EQ(distance_between(doubles({1}), doubles({kNoNumber}))->different, 1);
  EXPECT_EQ(distance_between(doubles({0.5}), tensor<float>("t", TensorType::f32, {1}, {0.5f}))->different, 0);
  EXPECT_THROW(distance_between(doubles({1}), doubles({1, 2})), InvalidArgument);
}

TEST(TensorDistance, CountsNonFiniteElementsByThemselves) {
  const auto all = distance_between(doubles({1, kInfinity}), doubles({kNoNumber, -kInfinity}));
  EXPECT_EQ(all->different, 2);
  EXPECT_EQ(all->non_finite, 2);
  EXPECT_EQ(all->cosine, std::nullopt);
  const auto some = distance_between(doubles({1, 2, 3}), doubles({kNoNumber, 2.5, 3}));
  EXPECT_EQ(some->different, 2);
  EXPECT_EQ(some->non_finite, 1);
  EXPECT_EQ(some->absolute, 0.5);
  EXPECT_NEAR(some->cosine.value(), 14 / std::sqrt(13.0 * 15.25), 1e-12);
  EXPECT_EQ(distance_between(doubles({1e200, 1}), doubles({1e200, 2}))->cosine, std::nullopt) << "overflow";
}

std::vector<std::string> names_in(const std::vector<DifferentTensor>& tensors) {
  std::vector<std::string> names;
  for (const DifferentTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

TEST(CheckpointDiff, IgnoresOrder) {
  const auto a = awkward_tensors();
  EXPECT_THAT(different_tensors(a, std::vector(a.rbegin(), a.rend())), IsEmpty());
}

// By quadratic time, this would end after the time limit of a test.
TEST(CheckpointDiff, TakesLittleTimeForManyTensors) {
  std::vector<TensorRecord> tensors;
  for (int i = 0; i < 400'000; ++i) tensors.push_back({{std::to_string(i), TensorType::u8, {0}}, {}});
  EXPECT_THAT(different_tensors(tensors, std::vector(tensors.rbegin(), tensors.rend())), IsEmpty());
}

TEST(CheckpointDiff, FindsEveryKindOfDifference) {
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
  EXPECT_FALSE(found[4].distance) << "not a plain number";
  EXPECT_FALSE(found[5].a);
}

TEST(CheckpointDiff, ComparesFactsByName) {
  Checkpoint a = small_checkpoint(3, 0.5);
  Checkpoint b = small_checkpoint(4);
  (*a.about)["progress"]["seconds"] = 1.5;
  (*b.about)["progress"]["seconds"] = 2.5;
  (*a.about)["settings"] = "lr = 0.1\nseed = 1\n";
  (*b.about)["settings"] = "lr = 0.2\nseed = 1\n";
  (*b.about)["sampler"]["position"] = 321;
  std::vector<std::string> texts;
  for (const DifferentFact& fact : different_facts(a, b)) texts.push_back(fact.what + " " + fact.a + "|" + fact.b);
  EXPECT_THAT(texts, ElementsAre("/sampler/position 320|321", "score 0.5|", "settings: lr 0.1|0.2", "step 3|4"));
  EXPECT_THAT(different_facts(a, a), IsEmpty());
}

}  // namespace
}  // namespace gradring::train
