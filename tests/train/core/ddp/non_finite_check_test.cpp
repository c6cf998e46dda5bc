// SPDX-License-Identifier: Apache-2.0
// The first non-finite gradient, and the count of those too small, for any sharding.
#include "train/core/ddp/non_finite_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "kernels/ops/kernel_set.h"
#include "nn/models/model.h"
#include "tests/train/support/rank_rig.h"
#include "train/core/ddp/buckets.h"

namespace gradring::tests {
namespace {

const std::vector<int> kBackward = {7, 6, 5, 4, 3, 2, 1, 0};

/// One rank's summed gradients of a small ConvNet: whole, or shards of them.
struct Rank {
  std::vector<nn::Parameter> parameters = nn::parameters_of(nn::convnet({12, 12, 1}, 3));
  nn::ArenaLayout layout;
  train::Shards shards;
  kernels::HostDevice device;
  std::unique_ptr<kernels::Stream> stream = device.make_stream(kernels::StreamMode::in_place);
  train::DistributedDataParallel ddp;
  train::BucketMemory gradients;
  kernels::PartialSums partial_sums;
  train::NonFiniteCheck check;
  unsigned arrivals = 0;
  kernels::step_state::StepState found;

  Rank(comm::ProcessGroup& group, bool sharded)
      : layout(parameters, std::vector<std::vector<int>>{{7, 6, 5}, {4}, {3, 2, 1, 0}},
               kernels::gradient_statistics::kBlock * static_cast<std::size_t>(group.world_size())),
        shards(layout, sharded ? group.world_size() : 1, sharded ? group.rank() : 0),
        ddp(group, layout, device, *stream, kernels::StreamMode::in_place),
        gradients({}, group, layout),
        check({.device = device,
               .group = group,
               .ddp = ddp,
               .shards = shards,
               .kernel = kernels::kernel_set().gradient_statistics.front(),
               .partial_sums = partial_sums},
              train::shards_within(shards, gradients)) {}

  std::span<float> of(int parameter) {
    return {train::gradients_within(gradients, nullptr).parameter(parameter), layout.parameter(parameter).elements};
  }
  void fill(float value) {
    for (const int parameter : kBackward) std::ranges::fill(of(parameter), value);
  }
  void look() {
    check.enqueue(*stream, {.found = &found, .arrivals = &arrivals});
    stream->synchronize(Deadline::after(std::chrono::minutes(1)));
  }
};

TEST(NonFiniteCheck, NamesTheFirstParameterInBackwardOrder) {
  for (const int world : {1, 2, 3, 4})
    for (const bool sharded : {false, true})
      run_ranks(world, [&](comm::ProcessGroup& group) {
        Rank rank(group, sharded);
        rank.fill(1);
        rank.look();
        EXPECT_EQ(rank.found.non_finite, 0);
        EXPECT_EQ(rank.check.parameter_at(rank.found.first_non_finite), -1);
        for (auto bad = kBackward.rbegin(); bad != kBackward.rend(); ++bad) {  // earlier ones stay bad
          rank.of(*bad).back() = std::numeric_limits<float>::infinity();
          rank.look();
          EXPECT_EQ(rank.found.non_finite, 1);
          EXPECT_EQ(rank.check.parameter_at(rank.found.first_non_finite), *bad) << world << " ranks, the last element";
          rank.of(*bad).front() = std::numeric_limits<float>::quiet_NaN();
          rank.look();
          EXPECT_EQ(rank.check.parameter_at(rank.found.first_non_finite), *bad) << world << " ranks, the first element";
        }
      });
}

TEST(NonFiniteCheck, CountsGradientsTooSmallForF16WithoutPadding) {
  for (const int world : {1, 2, 3})
    run_ranks(world, [&](comm::ProcessGroup& group) {
      Rank rank(group, true);
      rank.fill(0x1p-24f);
      rank.look();
      EXPECT_EQ(rank.check.share_of(rank.found.tiny_gradients), 0);
      std::size_t all = 0;
      for (const int parameter : kBackward) all += rank.of(parameter).size();
      for (const int parameter : {4, 7}) std::ranges::fill(rank.of(parameter), -0x1p-25f);
      rank.of(0).front() = 0;
      rank.look();
      EXPECT_DOUBLE_EQ(rank.check.share_of(rank.found.tiny_gradients),
                       static_cast<double>(rank.of(4).size() + rank.of(7).size() + 1) / static_cast<double>(all));
    });
}

}  // namespace
}  // namespace gradring::tests
