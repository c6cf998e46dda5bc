// SPDX-License-Identifier: Apache-2.0
#include "data/loader/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "kernels/base/error.h"
#include "kernels/ops/gather_batch/draws.h"
#include "tests/data/support/message_of.h"
#include "tests/support/safetensors.h"

namespace gradring::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::int64_t> first_four(std::vector<std::int64_t> order) {
  order.resize(4);
  return order;
}

TEST(DistributedSampler, MatchesPyTorchOnEveryRecordedOrder) {
  const auto golden = tests::read_golden("distributed_sampler_seed7");
  int tables = 0;
  for (const auto& [name, stored] : golden) {
    int samples = 0, world_size = 0, shuffle = 0, drop_last = 0, epoch = 0, rank = 0;
    ASSERT_EQ(std::sscanf(name.c_str(), "n%d.world%d.shuffle%d.drop%d.epoch%d.rank%d", &samples, &world_size, &shuffle,
                          &drop_last, &epoch, &rank),
              6);
    const DistributedSampler sampler({.samples = samples,
                                      .rank = rank,
                                      .world_size = world_size,
                                      .shuffle = shuffle == 1,
                                      .seed = 7,
                                      .drop_last = drop_last == 1});
    EXPECT_EQ(sampler.order(epoch), stored.as<std::int64_t>()) << name;
    EXPECT_EQ(sampler.size(), stored.elements()) << name;
    ++tables;
  }
  EXPECT_EQ(tables, 240);
}

TEST(DistributedSampler, ShufflesAsTorchDoes) {
  EXPECT_THAT(torch_permutation(10, 0), ElementsAre(4, 1, 7, 5, 3, 9, 0, 8, 6, 2));
  EXPECT_THAT(torch_permutation(10, 42), ElementsAre(2, 6, 1, 8, 4, 5, 0, 9, 3, 7));
  EXPECT_EQ(torch_permutation(10, (1ull << 32) + 42), torch_permutation(10, 42));  // the lower 32 bits count
  EXPECT_THAT(torch_permutation(0, 0), ElementsAre());
  EXPECT_THAT(torch_permutation(1, 0), ElementsAre(0));
}

TEST(DistributedSampler, MatchesPyTorchOnMnistSizes) {
  const auto order = [](int rank, std::int64_t epoch) {
    return first_four(DistributedSampler({.samples = 60'000, .rank = rank, .world_size = 2}).order(epoch));
  };
  EXPECT_THAT(order(0, 0), ElementsAre(36044, 57327, 21567, 9481));
  EXPECT_THAT(order(1, 0), ElementsAre(10678, 55074, 15479, 43095));
  EXPECT_THAT(order(0, 1), ElementsAre(35845, 33254, 11299, 58355));
}

TEST(DistributedSampler, TellsWhichPositionsArePadding) {
  for (std::int64_t samples : {0, 1, 2, 7, 8, 9, 100})
    for (int world_size : {1, 2, 3, 4, 8})
      for (bool drop_last : {false, true}) {
        std::vector<int> visits(static_cast<std::size_t>(samples));
        std::int64_t real = 0, all = 0;
        for (int rank = 0; rank < world_size; ++rank) {
          const DistributedSampler sampler(
              {.samples = samples, .rank = rank, .world_size = world_size, .drop_last = drop_last});
          const auto order = sampler.order(5);
          for (std::int64_t position = 0; position < sampler.size(); ++position, ++all) {
            if (sampler.padding(position)) continue;
            ++visits.at(static_cast<std::size_t>(order.at(static_cast<std::size_t>(position))));
            ++real;
          }
        }
        EXPECT_LE(visits.empty() ? 0 : *std::max_element(visits.begin(), visits.end()), 1);
        if (drop_last)
          EXPECT_EQ(real, all);
        else
          EXPECT_EQ(real, samples);
      }
}

TEST(DistributedSampler, PadsByRepeatingFromTheFront) {
  // Two samples for five ranks: a, b, then a, b, a again.
  std::vector<std::int64_t> together;
  for (int rank = 0; rank < 5; ++rank)
    together.push_back(
        DistributedSampler({.samples = 2, .rank = rank, .world_size = 5, .shuffle = false}).order(0).at(0));
  EXPECT_THAT(together, ElementsAre(0, 1, 0, 1, 0));
}

TEST(DistributedSampler, SpeaksOfAnInvalidRankAsPyTorchDoes) {
  for (int rank : {-1, 4})
    EXPECT_THAT(
        tests::message_of<InvalidArgument>([&] { DistributedSampler({.samples = 10, .rank = rank, .world_size = 4}); }),
        HasSubstr("Invalid rank " + std::to_string(rank) + ", rank should be in the interval [0, 3]"));
}

TEST(DistributedSampler, RejectsWhatCannotBe) {
  EXPECT_THROW(DistributedSampler({.samples = -1}), InvalidArgument);
  EXPECT_THROW(DistributedSampler({.samples = 1, .world_size = 0}), InvalidArgument);
  EXPECT_THROW(torch_permutation(214'748'364, 0), InvalidArgument);
}

TEST(SequentialShard, VisitsEverySampleExactlyOnceInOrder) {
  for (std::int64_t samples : {0, 1, 3, 10, 1000})
    for (int world_size : {1, 2, 3, 4, 7, 16}) {
      std::vector<std::int64_t> together;
      for (int rank = 0; rank < world_size; ++rank) {
        const SequentialShard shard({.samples = samples, .rank = rank, .world_size = world_size});
        const auto order = shard.order(rank);  // the epoch does not matter
        EXPECT_EQ(static_cast<std::int64_t>(order.size()), shard.size());
        EXPECT_GE(shard.size(), samples / world_size);
        EXPECT_LE(shard.size(), samples / world_size + 1);
        together.insert(together.end(), order.begin(), order.end());
      }
      std::vector<std::int64_t> expected(static_cast<std::size_t>(samples));
      std::iota(expected.begin(), expected.end(), std::int64_t{0});
      EXPECT_EQ(together, expected) << samples << " samples, " << world_size << " ranks";
    }
}

TEST(SequentialShard, HasNoPadding) {
  const SequentialShard shard({.samples = 10, .rank = 3, .world_size = 4});
  for (std::int64_t position = 0; position < shard.size(); ++position) EXPECT_FALSE(shard.padding(position));
}

TEST(SequentialShard, RejectsARankOutsideTheWorld) {
  EXPECT_THROW(SequentialShard({.samples = 10, .rank = 2, .world_size = 2}), InvalidArgument);
  EXPECT_THROW(SequentialShard({.samples = 10, .rank = -1, .world_size = 2}), InvalidArgument);
}

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
                                                  std::int64_t shard, std::int64_t micro_batch = 0) {
  std::vector<std::unique_ptr<StepSampler>> ranks;
  for (int rank = 0; rank < world; ++rank)
    ranks.push_back(make_sharded_steps(spec_of(samples, rank, world, samples_of_step),
                                       {.samples = shard, .of_micro_batch = micro_batch}));
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

TEST(ShardedSteps, DealEachMicroBatchByItself) {
  const auto permutation = torch_permutation(43, 5 + 2);
  for (const int world : {1, 2, 3, 4, 7}) {
    const auto ranks = sharded(43, world, 24, 4, 12);  // steps of 12 and 12, and of 12 and 7 samples
    ASSERT_EQ(ranks[0]->steps(), 2);
    std::vector<std::vector<std::int64_t>> orders;
    for (const auto& rank : ranks) orders.push_back(rank->order(2));
    std::vector<std::int64_t> epoch;
    for (int micro_batch = 0; micro_batch < 4; ++micro_batch)
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const std::int64_t own = std::min(ranks[rank]->micro_batch_of_rank(), std::ssize(orders[rank]));
        EXPECT_EQ(own % 4, micro_batch == 3 ? own % 4 : 0);
        if (own > 0) {
          const std::int64_t step = micro_batch / 2;
          const std::int64_t offset = micro_batch % 2 * ranks[rank]->micro_batch_of_rank();
          EXPECT_EQ(ranks[rank]->number_in_step(step, offset), std::ssize(epoch) - step * 24);
        }
        epoch.insert(epoch.end(), orders[rank].begin(), orders[rank].begin() + own);
        orders[rank].erase(orders[rank].begin(), orders[rank].begin() + own);
      }
    EXPECT_EQ(epoch, permutation) << world << " ranks";
    for (const auto& rank : ranks) {
      EXPECT_EQ(rank->step(1).begin, rank->step(0).end);
      EXPECT_EQ(rank->step(1).end, std::ssize(rank->order(2)));
      EXPECT_EQ(rank->step(1).samples, 19);
      EXPECT_EQ(rank->step(0).most, ranks[0]->step(0).end);
    }
  }
}

TEST(ShardedSteps, RejectShardsThatDoNotFitAStep) {
  EXPECT_THROW(make_sharded_steps(spec_of(10, 0, 1, 10), {.samples = 4}), InvalidArgument);
  EXPECT_THROW(make_sharded_steps(spec_of(10, 0, 1, 10), {.samples = 0}), InvalidArgument);
  EXPECT_THROW(make_sharded_steps(spec_of(10, 2, 2, 10), {.samples = 5}), InvalidArgument);
  EXPECT_THROW(make_sharded_steps(spec_of(12, 0, 1, 12), {.samples = 4, .of_micro_batch = 6}), InvalidArgument);
  EXPECT_THROW(make_sharded_steps(spec_of(12, 0, 1, 12), {.samples = 4, .of_micro_batch = 8}), InvalidArgument);
}

TEST(DistributedSteps, CutPyTorchsOrder) {
  const auto steps = make_distributed_steps(spec_of(10, 1, 4, 8));  // three positions a rank, by two
  std::vector<std::int64_t> samples = steps->order(3);
  std::ranges::transform(samples, samples.begin(), kernels::gather_batch::sample_of);
  EXPECT_EQ(samples, DistributedSampler({.samples = 10, .rank = 1, .world_size = 4, .seed = 5}).order(3));
  EXPECT_EQ(kernels::gather_batch::earlier_visits_of(make_distributed_steps(spec_of(10, 3, 4, 8))->order(3).back()), 1)
      << "the twelfth position is padding";
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

/// Where a rank's samples are in a step, all ranks' together are those of one rank.
TEST(StepSampler, SaysWhereARanksSamplesAreInTheStep) {
  const auto one = sharded(61, 1, 24, 4);
  const auto expect_one = [&](std::int64_t step, const std::vector<std::unique_ptr<StepSampler>>& ranks) {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(ranks[0]->step(step).samples), -1);
    for (const auto& rank : ranks) {
      const StepShare share = rank->step(step);
      const auto order = rank->order(0);
      for (std::int64_t i = share.begin; i < share.end; ++i)
        samples.at(static_cast<std::size_t>(share.first + (i - share.begin) * share.stride)) =
            order[static_cast<std::size_t>(i)];
    }
    samples.resize(static_cast<std::size_t>(one[0]->step(step).samples));  // without those that come twice
    EXPECT_EQ(samples, visited(one, 0, step)) << "step " << step << ", " << ranks.size() << " ranks";
  };
  for (const int world : {1, 2, 3, 4}) {
    std::vector<std::unique_ptr<StepSampler>> distributed;
    for (int rank = 0; rank < world; ++rank)
      distributed.push_back(make_distributed_steps(spec_of(61, rank, world, 24)));
    for (std::int64_t step = 0; step < one[0]->steps(); ++step) {
      expect_one(step, sharded(61, world, 24, 4));
      expect_one(step, distributed);
    }
  }
}

TEST(StepSampler, FindsTheStepThatBeginsAtAPosition) {
  const auto steps = make_sharded_steps(spec_of(61, 0, 2, 16), {.samples = 4});
  for (std::int64_t step = 0; step < steps->steps(); ++step)
    EXPECT_EQ(steps->step_at(steps->step(step).position), step);
  EXPECT_EQ(steps->step_at(61), 4) << "the end";
  for (const std::int64_t within : {-16, 1, 15, 60, 64}) EXPECT_EQ(steps->step_at(within), std::nullopt) << within;
}

}  // namespace
}  // namespace gradring::data
