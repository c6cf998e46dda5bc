// SPDX-License-Identifier: Apache-2.0
#include "data/samplers/step_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "data/samplers/distributed_sampler.h"
#include "kernels/runtime/error.h"

namespace gradring::data {
namespace {

using ::testing::ElementsAre;

StepSamplerSpec spec_of(std::int64_t samples, int rank, int world, std::int64_t samples_of_step) {
  return {.samples = samples, .rank = rank, .world_size = world, .seed = 5, .samples_of_step = samples_of_step};
}

/// What all ranks together visit in a step, in the order of the ranks.
std::vector<std::int64_t> visited(const std::vector<std::unique_ptr<StepSampler>>& ranks, std::int64_t epoch,
                                  std::int64_t index) {
  std::vector<std::int64_t> all;
  for (const auto& rank : ranks) {
    const auto order = rank->order(epoch);
    const StepShare share = rank->step(index);
    EXPECT_LE(share.end - share.begin, rank->most_of_rank());
    all.insert(all.end(), order.begin() + share.begin, order.begin() + share.end);
  }
  return all;
}

std::vector<std::unique_ptr<StepSampler>> sharded(std::int64_t samples, int world, std::int64_t samples_of_step,
                                                  std::int64_t shard) {
  std::vector<std::unique_ptr<StepSampler>> ranks;
  for (int rank = 0; rank < world; ++rank)
    ranks.push_back(make_sharded_steps(spec_of(samples, rank, world, samples_of_step), shard));
  return ranks;
}

TEST(ShardedSteps, VisitTheSameSamplesInTheSameOrderWhateverTheWorld) {
  for (const std::int64_t samples : {1, 7, 16, 61, 64}) {
    const auto permutation = torch_permutation(samples, 5 + 2);
    for (const int world : {1, 2, 3, 4, 7}) {
      const auto ranks = sharded(samples, world, 16, 4);
      std::vector<std::int64_t> epoch;
      for (std::int64_t step = 0; step < ranks[0]->steps(); ++step) {
        const auto samples_of_step = visited(ranks, 2, step);
        for (const auto& rank : ranks) {
          EXPECT_EQ(rank->step(step).samples, std::ssize(samples_of_step));
          EXPECT_EQ(rank->step(step).position, std::ssize(epoch));
        }
        epoch.insert(epoch.end(), samples_of_step.begin(), samples_of_step.end());
      }
      EXPECT_EQ(epoch, permutation) << samples << " samples, " << world << " ranks";
    }
  }
}

TEST(ShardedSteps, CutNoShard) {
  for (const int world : {1, 2, 3, 5})
    for (const auto& rank : sharded(61, world, 16, 4))
      for (std::int64_t step = 0; step + 1 < rank->steps(); ++step) {
        EXPECT_EQ(rank->step(step).begin % 4, 0);
        EXPECT_EQ(rank->step(step).end % 4, 0);
      }
}

TEST(ShardedSteps, LeaveRanksWithoutAnyWhereShardsRunOut) {
  const auto ranks = sharded(18, 3, 8, 4);  // steps of 2, 2 and one short shard
  ASSERT_EQ(ranks[0]->steps(), 3);
  const auto counts = [&ranks](std::int64_t step) {
    std::vector<std::int64_t> all;
    for (const auto& rank : ranks) all.push_back(rank->step(step).end - rank->step(step).begin);
    return all;
  };
  EXPECT_THAT(counts(0), ElementsAre(4, 4, 0));
  EXPECT_THAT(counts(2), ElementsAre(2, 0, 0));
  EXPECT_EQ(ranks[2]->order(0).size(), 0u);
}

TEST(ShardedSteps, RefuseShardsThatDoNotFitAStep) {
  EXPECT_THROW(make_sharded_steps(spec_of(10, 0, 1, 10), 4), InvalidArgument);
  EXPECT_THROW(make_sharded_steps(spec_of(10, 0, 1, 10), 0), InvalidArgument);
  EXPECT_THROW(make_sharded_steps(spec_of(10, 2, 2, 10), 5), InvalidArgument);
}

TEST(DistributedSteps, CutPyTorchsOrder) {
  const auto steps = make_distributed_steps(spec_of(10, 1, 4, 8));  // three positions a rank, by two
  EXPECT_EQ(steps->order(3), DistributedSampler({.samples = 10, .rank = 1, .world_size = 4, .seed = 5}).order(3));
  ASSERT_EQ(steps->steps(), 2);
  const StepShare last = steps->step(1);
  EXPECT_EQ(last.begin, 2);
  EXPECT_EQ(last.end, 3);
  EXPECT_EQ(last.samples, 4);
  EXPECT_EQ(last.position, 8);
  EXPECT_EQ(steps->end_position(), 12) << "two samples come twice";
  EXPECT_EQ(steps->most_of_rank(), 2);
  EXPECT_THROW(make_distributed_steps(spec_of(10, 0, 4, 6)), InvalidArgument);
}

TEST(StepSampler, FindsTheStepThatBeginsAtAPosition) {
  const auto steps = make_sharded_steps(spec_of(61, 0, 2, 16), 4);
  for (std::int64_t step = 0; step < steps->steps(); ++step)
    EXPECT_EQ(steps->step_at(steps->step(step).position), step);
  EXPECT_EQ(steps->step_at(61), 4) << "the end";
  for (const std::int64_t within : {-16, 1, 15, 60, 64}) EXPECT_EQ(steps->step_at(within), std::nullopt) << within;
}

}  // namespace
}  // namespace gradring::data
