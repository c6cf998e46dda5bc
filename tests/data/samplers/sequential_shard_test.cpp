// SPDX-License-Identifier: Apache-2.0
#include "data/samplers/sequential_shard.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kernels/runtime/error.h"

namespace gradring::data {
namespace {

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

TEST(SequentialShard, RefusesARankOutsideTheWorld) {
  EXPECT_THROW(SequentialShard({.samples = 10, .rank = 2, .world_size = 2}), InvalidArgument);
  EXPECT_THROW(SequentialShard({.samples = 10, .rank = -1, .world_size = 2}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::data
