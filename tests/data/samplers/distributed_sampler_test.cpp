// SPDX-License-Identifier: Apache-2.0
#include "data/samplers/distributed_sampler.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>

#include "kernels/runtime/error.h"
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

TEST(DistributedSampler, RefusesWhatCannotBe) {
  EXPECT_THROW(DistributedSampler({.samples = -1}), InvalidArgument);
  EXPECT_THROW(DistributedSampler({.samples = 1, .world_size = 0}), InvalidArgument);
  EXPECT_THROW(torch_permutation(214'748'364, 0), InvalidArgument);
}

}  // namespace
}  // namespace gradring::data
