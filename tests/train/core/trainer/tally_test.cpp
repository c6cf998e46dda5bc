// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "kernels/base/error.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Tally, CountsForEachClass) {
  Tally tally(3);
  tally.add(std::vector<double>{1, 2, 0,   // as 1
                                5, 0, 0,   // as 0
                                0, 1, 9,   // as 2
                                0, 3, 1},  // as 1
            std::vector<std::int32_t>{1, 0, 0, 2});
  EXPECT_EQ(tally.samples(), 4);
  EXPECT_EQ(tally.correct(), 2);
  EXPECT_THAT(tally.classes(), ElementsAre(ClassCounts{.samples = 2, .predicted = 1, .correct = 1},
                                           ClassCounts{.samples = 1, .predicted = 2, .correct = 1},
                                           ClassCounts{.samples = 1, .predicted = 1, .correct = 0}));
}

TEST(Tally, TakesTheFirstOfEqualLogitsAndPredictsNothingFromANan) {
  Tally tally(2);
  tally.add(std::vector<double>{1, 1, 1, 1, kNan, 5}, std::vector<std::int32_t>{0, 1, 1});
  EXPECT_EQ(tally.samples(), 3);
  EXPECT_EQ(tally.correct(), 1);
  EXPECT_EQ(tally.classes()[0].predicted, 2);
  EXPECT_EQ(tally.classes()[1].predicted, 0);
  EXPECT_EQ(tally.correct_in_top(), 2);
}

TEST(Tally, CountsWhatIsAmongTheFiveLargest) {
  const std::vector<double> logits = {3, 9, 9, 4, 7, 8, 6, -1};  // class 6 is fifth, class 3 sixth
  for (const auto& [label, in_top] : {std::pair{6, 1}, {3, 0}, {1, 1}, {2, 1}, {7, 0}}) {
    Tally tally(8);
    tally.add(logits, std::vector<std::int32_t>{label});
    EXPECT_EQ(tally.correct_in_top(), in_top) << label;
  }
  for (const auto& [label, in_top] : {std::pair{4, 1}, {5, 0}}) {
    Tally tally(7);
    tally.add(std::vector<double>(7, 1.0), std::vector<std::int32_t>{label});
    EXPECT_EQ(tally.correct_in_top(), in_top) << "of equal logits, label " << label;
  }
}

TEST(Tally, AddsUpOverRanks) {
  Tally one(2), other(2), both(2);
  const std::vector<double> logits = {1, 0, 1, 0, 0, 1};
  const std::vector<std::int32_t> labels = {0, 1, 1};
  both.add(logits, labels);
  one.add(std::span(logits).first(2), std::span(labels).first(1));
  other.add(std::span(logits).subspan(2), std::span(labels).subspan(1));
  std::vector<std::int64_t> sums = one.counts();
  const auto more = other.counts();
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
  one.set_counts(sums);
  EXPECT_EQ(one.counts(), both.counts());
  EXPECT_EQ(one.correct(), 2);
}

TEST(Tally, RejectsWhatDoesNotFit) {
  Tally tally(2);
  EXPECT_THROW(tally.add(std::vector<double>{1, 2, 3}, std::vector<std::int32_t>{0}), InvalidArgument);
  EXPECT_THROW(tally.add(std::vector<double>{1, 2}, std::vector<std::int32_t>{2}), InvalidArgument);
  EXPECT_THROW(tally.set_counts(std::vector<std::int64_t>{1}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::train
