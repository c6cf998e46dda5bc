// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/loader/sampler.h"
#include "kernels/ops/gather_batch/draws.h"

namespace gradring::data {
namespace {

constexpr std::int64_t kSamples = 100;

/// 80 samples of class 0, 15 of class 1, none of class 2, 5 of class 3.
InMemoryDataset unequal() {
  InMemoryDataset::Contents contents{.name = "unequal", .shape = {1, 1, 1}, .classes = 4};
  for (int i = 0; i < kSamples; ++i) contents.labels.push_back(i % 20 == 7 ? 3 : i % 20 % 6 == 1 ? 1 : 0);
  contents.pixels.resize(kSamples);
  return InMemoryDataset(std::move(contents));
}

enum class Kind { distributed, sharded };

std::unique_ptr<StepSampler> make(const Dataset& dataset, Kind kind, int rank, int ranks) {
  const StepSamplerSpec spec{
      .samples = dataset.size(), .rank = rank, .world_size = ranks, .seed = 3, .samples_of_step = 20};
  return make_balanced_steps(
      kind == Kind::distributed ? make_distributed_steps(spec) : make_sharded_steps(spec, {.samples = 5}), dataset, 3);
}

/// All visits of an epoch, sorted.
std::vector<std::int64_t> visits_of(const Dataset& dataset, Kind kind, int ranks, std::int64_t epoch) {
  std::vector<std::int64_t> all;
  for (int rank = 0; rank < ranks; ++rank)
    std::ranges::copy(make(dataset, kind, rank, ranks)->order(epoch), std::back_inserter(all));
  std::ranges::sort(all);
  return all;
}

/// All samples of an epoch, sorted.
std::vector<std::int64_t> epoch_of(const Dataset& dataset, Kind kind, int ranks, std::int64_t epoch) {
  std::vector<std::int64_t> all = visits_of(dataset, kind, ranks, epoch);
  std::ranges::transform(all, all.begin(), kernels::gather_batch::sample_of);
  std::ranges::sort(all);
  return all;
}

/// So every visit has random draws of its own, which do not depend on the ranks.
TEST(BalancedSteps, VisitsOfOneSampleDiffer) {
  const InMemoryDataset dataset = unequal();
  for (const Kind kind : {Kind::distributed, Kind::sharded})
    for (const int ranks : {1, 2, 4, 5}) {
      const std::vector<std::int64_t> visits = visits_of(dataset, kind, ranks, 2);
      EXPECT_EQ(std::ranges::adjacent_find(visits), visits.end()) << ranks << " ranks";
      std::vector<std::int64_t> partners = make(dataset, kind, 0, ranks)->visits(2);
      std::ranges::sort(partners);
      EXPECT_EQ(partners, visits) << "of mixtures are drawn from the same visits";
    }
}

TEST(BalancedSteps, PaddingIsAFurtherVisit) {
  const InMemoryDataset dataset = unequal();
  const StepSamplerSpec three{.samples = kSamples, .world_size = 3, .samples_of_step = 30};
  std::vector<std::int64_t> plain, balanced;
  for (int rank = 0; rank < 3; ++rank) {  // 102 positions
    StepSamplerSpec spec = three;
    spec.rank = rank;
    std::ranges::copy(make_distributed_steps(spec)->order(1), std::back_inserter(plain));
    std::ranges::copy(make_balanced_steps(make_distributed_steps(spec), dataset, 3)->order(1),
                      std::back_inserter(balanced));
  }
  for (std::vector<std::int64_t>* visits : {&plain, &balanced}) {
    std::ranges::sort(*visits);
    EXPECT_EQ(visits->size(), 102u);
    EXPECT_EQ(std::ranges::adjacent_find(*visits), visits->end());
  }
}

TEST(BalancedSteps, VisitClassesEquallyOften) {
  const InMemoryDataset dataset = unequal();
  std::map<int, int> of_class;
  std::map<std::int64_t, int> of_sample;
  for (const std::int64_t index : epoch_of(dataset, Kind::distributed, 1, 0)) {
    ++of_class[dataset.label(index)];
    ++of_sample[index];
  }
  EXPECT_EQ(of_class.size(), 3u) << "one class has no samples";
  for (const auto& [label, count] : of_class) EXPECT_TRUE(count == 33 || count == 34) << label << ": " << count;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const int label = dataset.label(i), count = of_sample[i];
    const auto [least, most] = label == 0 ? std::pair(0, 1) : label == 1 ? std::pair(1, 3) : std::pair(6, 7);
    EXPECT_TRUE(count >= least && count <= most) << "sample " << i << " of class " << label << ": " << count;
  }
}

TEST(BalancedSteps, VisitTheSameSamplesOnAnyNumberOfRanks) {
  const InMemoryDataset dataset = unequal();
  for (const Kind kind : {Kind::distributed, Kind::sharded})
    for (const int ranks : {2, 4})
      EXPECT_EQ(epoch_of(dataset, kind, ranks, 5), epoch_of(dataset, kind, 1, 5)) << ranks << " ranks";
}

TEST(BalancedSteps, VisitOtherSamplesOfALargeClassInEachEpoch) {
  const InMemoryDataset dataset = unequal();
  EXPECT_NE(epoch_of(dataset, Kind::distributed, 1, 0), epoch_of(dataset, Kind::distributed, 1, 1));
  EXPECT_EQ(epoch_of(dataset, Kind::distributed, 1, 1), epoch_of(dataset, Kind::distributed, 1, 1));
  std::map<std::int64_t, int> seen;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch)
    for (const std::int64_t index : epoch_of(dataset, Kind::distributed, 1, epoch)) ++seen[index];
  EXPECT_EQ(seen.size(), 100u) << "after 20 epochs, every sample was visited";
}

TEST(BalancedSteps, KeepStepsAndNames) {
  const InMemoryDataset dataset = unequal();
  const auto balanced = make(dataset, Kind::sharded, 1, 2);
  const auto plain = make_sharded_steps(
      {.samples = kSamples, .rank = 1, .world_size = 2, .seed = 3, .samples_of_step = 20}, {.samples = 5});
  EXPECT_EQ(balanced->name(), "sharded");
  EXPECT_EQ(balanced->steps(), plain->steps());
  EXPECT_EQ(balanced->step(1).begin, plain->step(1).begin);
  EXPECT_EQ(balanced->number_in_step(1, 3), plain->number_in_step(1, 3));
  EXPECT_EQ(balanced->order(0).size(), plain->order(0).size());
}

}  // namespace
}  // namespace gradring::data
