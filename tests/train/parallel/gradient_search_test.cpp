// SPDX-License-Identifier: Apache-2.0
// Which gradient is the first that is not finite, and how many are too small, whoever has which shard.
#include "train/parallel/gradient_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "nn/models/model.h"
#include "tests/train/support/rank_rig.h"
#include "train/parallel/bucket_memory.h"

namespace gradring::tests {
namespace {

/// Sums nothing.
class NoSum final : public train::BucketSum {
  void enqueue_sum(int, kernels::Stream&) override {}
};

const std::vector<int> kBackward = {7, 6, 5, 4, 3, 2, 1, 0};

/// One rank's gradients of a small ConvNet, as they are when they were summed: whole, or shards of them.
struct Rank {
  std::vector<nn::Parameter> parameters = nn::parameters_of(nn::convnet({12, 12, 1}, 3));
  nn::ArenaLayout layout;
  train::Shards shards;
  kernels::HostDevice device;
  std::unique_ptr<kernels::Stream> stream = device.make_stream(kernels::StreamMode::in_place);
  NoSum sum;
  train::DistributedDataParallel ddp;
  train::BucketMemory gradients;
  train::GradientSearch search;
  kernels::step_state::StepState found;

  Rank(comm::ProcessGroup& group, bool sharded)
      : layout(parameters, std::vector<std::vector<int>>{{7, 6, 5}, {4}, {3, 2, 1, 0}},
               kernels::sum_of_squares::kBlock * static_cast<std::size_t>(group.world_size())),
        shards(layout, sharded ? group.world_size() : 1, sharded ? group.rank() : 0),
        ddp(group, sum, layout, device, *stream, kernels::StreamMode::in_place),
        gradients({}, group, layout),
        search({.device = device,
                .group = group,
                .ddp = ddp,
                .shards = shards,
                .kernel = kernels::sum_of_squares::variants().front()},
               train::shards_within(shards, gradients)) {}

  std::span<float> of(int parameter) {
    return {train::gradients_within(gradients, nullptr).parameter(parameter), layout.parameter(parameter).elements};
  }
  void fill(float value) {
    for (const int parameter : kBackward) std::ranges::fill(of(parameter), value);
  }
  void look() {
    search.enqueue(*stream, &found);
    stream->synchronize(Deadline::after(std::chrono::minutes(1)));
  }
};

TEST(GradientSearch, NamesTheFirstAsBackwardGoes) {
  for (const int world : {1, 2, 3, 4})
    for (const bool sharded : {false, true})
      run_ranks(world, [&](comm::ProcessGroup& group) {
        Rank rank(group, sharded);
        rank.fill(1);
        rank.look();
        EXPECT_EQ(rank.found.non_finite, 0);
        EXPECT_EQ(rank.search.parameter_at(rank.found.first_non_finite), -1);
        for (auto bad = kBackward.rbegin(); bad != kBackward.rend(); ++bad) {  // those behind it stay bad
          rank.of(*bad).back() = std::numeric_limits<float>::infinity();
          rank.look();
          EXPECT_EQ(rank.found.non_finite, 1);
          EXPECT_EQ(rank.search.parameter_at(rank.found.first_non_finite), *bad) << world << " ranks, the last element";
          rank.of(*bad).front() = std::numeric_limits<float>::quiet_NaN();
          rank.look();
          EXPECT_EQ(rank.search.parameter_at(rank.found.first_non_finite), *bad)
              << world << " ranks, the first element";
        }
      });
}

TEST(GradientSearch, CountsWhatF16WouldLoseAndNothingBetweenTensors) {
  for (const int world : {1, 2, 3})
    run_ranks(world, [&](comm::ProcessGroup& group) {
      Rank rank(group, true);
      rank.fill(0x1p-24f);
      rank.look();
      EXPECT_EQ(rank.search.share_of(rank.found.tiny_gradients), 0);
      std::size_t all = 0;
      for (const int parameter : kBackward) all += rank.of(parameter).size();
      for (const int parameter : {4, 7}) std::ranges::fill(rank.of(parameter), -0x1p-25f);
      rank.of(0).front() = 0;
      rank.look();
      EXPECT_DOUBLE_EQ(rank.search.share_of(rank.found.tiny_gradients),
                       static_cast<double>(rank.of(4).size() + rank.of(7).size() + 1) / static_cast<double>(all));
    });
}

}  // namespace
}  // namespace gradring::tests
