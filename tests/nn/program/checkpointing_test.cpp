// SPDX-License-Identifier: Apache-2.0
#include "nn/program/checkpointing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

#include "kernels/runtime/error.h"

namespace gradring::nn {
namespace {

using Kind = Checkpointing::Kind;
using testing::ElementsAre;
using testing::HasSubstr;

/// What the segments that end with `ends` cost, by the definition: the most that is alive when backward comes to each.
Segmentation weigh(const std::vector<StageCost>& stages, const std::vector<std::size_t>& ends) {
  Segmentation result{.ends = ends};
  for (std::size_t segment = 0; segment < ends.size(); ++segment) {
    const std::size_t first = segment == 0 ? 0 : ends[segment - 1] + 1;
    std::size_t alive = stages.back().bytes;
    for (std::size_t earlier = 0; earlier <= segment; ++earlier)
      if (earlier + 1 < ends.size()) alive += stages[ends[earlier]].bytes;
    for (std::size_t i = first; i < ends[segment]; ++i) {
      alive += stages[i].bytes;
      if (segment + 1 < ends.size()) result.work += stages[i].work;
    }
    result.peak_bytes = std::max(result.peak_bytes, alive);
  }
  return result;
}

/// Every segmentation there is.
std::vector<Segmentation> all_of(const std::vector<StageCost>& stages) {
  std::vector<Segmentation> all;
  for (unsigned cuts = 0; cuts < 1u << (stages.size() - 1); ++cuts) {
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < stages.size(); ++i)
      if (i + 1 == stages.size() || (cuts >> i & 1) != 0) ends.push_back(i);
    all.push_back(weigh(stages, ends));
  }
  return all;
}

std::size_t least_bytes(const std::vector<Segmentation>& all, std::size_t most_segments) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const Segmentation& one : all)
    if (one.ends.size() <= most_segments) least = std::min(least, one.peak_bytes);
  return least;
}

double least_work(const std::vector<Segmentation>& all, std::size_t budget) {
  double least = std::numeric_limits<double>::max();
  for (const Segmentation& one : all)
    if (one.peak_bytes <= budget) least = std::min(least, one.work);
  return least;
}

TEST(ChooseSegments, FindsWhatTryingAllOfThemFinds) {
  constexpr unsigned kSeed = 23;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  for (int round = 0; round < 200; ++round) {
    std::vector<StageCost> stages(1 + random() % 9);
    for (StageCost& stage : stages) stage = {.bytes = random() % 100, .work = static_cast<double>(random() % 100)};
    const auto all = all_of(stages);
    const auto expect_honest = [&](const Segmentation& chosen) {
      const Segmentation weighed = weigh(stages, chosen.ends);
      EXPECT_EQ(chosen.peak_bytes, weighed.peak_bytes);
      EXPECT_EQ(chosen.work, weighed.work);
    };
    for (std::int64_t segments = 1; segments <= 4; ++segments) {
      const Segmentation chosen = choose_segments(stages, {.kind = Kind::segments, .segments = segments});
      expect_honest(chosen);
      EXPECT_LE(chosen.ends.size(), static_cast<std::size_t>(segments));
      EXPECT_EQ(chosen.peak_bytes, least_bytes(all, static_cast<std::size_t>(segments)));
    }
    const Segmentation least = choose_segments(stages, {.kind = Kind::automatic});
    expect_honest(least);
    EXPECT_EQ(least.peak_bytes, least_bytes(all, stages.size()));
    EXPECT_EQ(least.work, least_work(all, least.peak_bytes));
    for (const Segmentation& one : all) {
      if (one.peak_bytes == 0) continue;  // would be no budget
      const Segmentation chosen = choose_segments(stages, {.kind = Kind::automatic, .budget_bytes = one.peak_bytes});
      expect_honest(chosen);
      EXPECT_LE(chosen.peak_bytes, one.peak_bytes);
      EXPECT_EQ(chosen.work, least_work(all, one.peak_bytes));
    }
  }
}

TEST(ChooseSegments, WithoutCheckpointingThereIsOneAndNothingIsComputedTwice) {
  const std::vector<StageCost> stages = {{5, 1}, {6, 2}, {7, 3}};
  const Segmentation chosen = choose_segments(stages, {});
  EXPECT_THAT(chosen.ends, ElementsAre(2));
  EXPECT_EQ(chosen.peak_bytes, 18u);
  EXPECT_EQ(chosen.work, 0);
}

TEST(ChooseSegments, AGenerousBudgetLeavesThingsAsTheyAre) {
  const std::vector<StageCost> stages(12, StageCost{10, 1});
  const Segmentation chosen = choose_segments(stages, {.kind = Kind::automatic, .budget_bytes = 120});
  EXPECT_THAT(chosen.ends, ElementsAre(11));
}

TEST(ChooseSegments, KeepsTheEndsThatAreSmall) {  // as pooling leaves them
  const std::vector<StageCost> stages = {{40, 9}, {40, 9}, {1, 9}, {40, 9}, {40, 9}, {1, 9}, {80, 9}, {1, 1}};
  EXPECT_THAT(choose_segments(stages, {.kind = Kind::segments, .segments = 3}).ends, ElementsAre(2, 5, 7));
}

TEST(ChooseSegments, SaysHowLittleTheActivationsCanDoWith) {
  const std::vector<StageCost> stages(4, StageCost{3 << 19, 1});
  try {
    choose_segments(stages, {.kind = Kind::automatic, .budget_bytes = 1 << 20});
    FAIL() << "no stage fits";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("budget of 1.000 MiB"));
    EXPECT_THAT(error.what(), HasSubstr("4.500 MiB"));
  }
}

TEST(ChooseSegments, ManyStagesAreNoMatterOfPatience) {  // a ResNet's worth; trying all would take 2^59 looks
  std::mt19937 random(5);
  std::vector<StageCost> stages(60);
  for (StageCost& stage : stages) stage = {.bytes = 1 + random() % 1000, .work = static_cast<double>(random() % 1000)};
  const Segmentation least = choose_segments(stages, {.kind = Kind::automatic});
  EXPECT_GT(least.ends.size(), 2u);
  const std::size_t budget = 2 * least.peak_bytes;
  EXPECT_LT(choose_segments(stages, {.kind = Kind::automatic, .budget_bytes = budget}).work, least.work);
}

TEST(ChooseSegments, RefusesNoSegmentsAndNoStages) {
  const std::vector<StageCost> stages(2);
  EXPECT_THROW(choose_segments(stages, {.kind = Kind::segments, .segments = 0}), InvalidArgument);
  EXPECT_THROW(choose_segments({}, {}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::nn
