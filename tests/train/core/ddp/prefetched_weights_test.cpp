// SPDX-License-Identifier: Apache-2.0
// Weights that no rank keeps whole are there when a plan reads them, and the next ones are on their way.
#include "train/core/ddp/compute_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/dtype.h"
#include "nn/models/model.h"
#include "tests/train/support/rank_rig.h"

namespace gradring::tests {
namespace {

using kernels::DType;

/// One rank's shards of weights, all of them of the value `value`; communication in place, so that what was fetched is
/// there.
struct PrefetchingRank {
  nn::ArenaLayout layout;
  train::Shards shards;
  kernels::HostDevice device;
  std::unique_ptr<kernels::Stream> stream = device.make_stream(kernels::StreamMode::in_place);
  train::DistributedDataParallel ddp;
  train::PrefetchedWeights weights;

  PrefetchingRank(comm::ProcessGroup& group, DType dtype)
      : layout(nn::parameters_of(nn::convnet({12, 12, 1}, 3)),
               std::vector<std::vector<int>>{{7, 6}, {5, 4}, {3, 2}, {1, 0}},
               16 * static_cast<std::size_t>(group.world_size())),
        shards(layout, group.world_size(), group.rank()),
        ddp(group, layout, device, *stream, kernels::StreamMode::in_place),
        weights({.device = device, .group = group, .shards = shards, .cast = kernels::kernel_set().cast.front()}, ddp,
                dtype, 2) {}

  void set(float value) {
    for (int bucket = 0; bucket < layout.buckets(); ++bucket)
      std::fill_n(weights.master()[static_cast<std::size_t>(bucket)], shards.in_bucket(bucket).elements,
                  value + static_cast<float>(bucket));
  }
  /// Announces a layer, weight and bias, and reads its weight.
  float read(int layer) {
    const std::array<int, 2> parameters = {2 * layer, 2 * layer + 1};
    weights.observer().weights_needed(parameters);
    return peek(layer);
  }
  /// Reads what lies where the layer's weight would, whether it is there or not: its last element.
  float peek(int layer) const {
    const auto elements = layout.parameter(2 * layer).elements;
    return static_cast<const float*>(weights.view().parameter(2 * layer))[elements - 1];
  }
  void begin() { weights.observer().before_forward(); }
};

TEST(PrefetchedWeights, AreThereBeforeTheyAreRead) {
  for (const int world : {1, 2, 3})
    run_ranks(world, [](comm::ProcessGroup& group) {
      PrefetchingRank rank(group, DType::f32);
      for (const float value : {10.0f, 20.0f}) {  // an update between two passes
        rank.set(value);
        rank.begin();
        for (const int layer : {0, 1, 2, 3}) EXPECT_EQ(rank.read(layer), value + static_cast<float>(3 - layer));
        for (const int layer : {3, 2, 1, 2, 1, 0}) EXPECT_EQ(rank.read(layer), value + static_cast<float>(3 - layer));
      }
    });
}

TEST(PrefetchedWeights, FetchTheNextBucketWhileAPlanRuns) {
  run_ranks(2, [](comm::ProcessGroup& group) {
    PrefetchingRank rank(group, DType::f32);
    rank.set(10);
    rank.begin();
    rank.read(0);
    EXPECT_NE(rank.peek(1), 12.0f) << "nobody knows yet what comes next";
    for (const int layer : {1, 2, 3}) rank.read(layer);
    rank.begin();
    for (const int layer : {0, 1, 2}) {
      rank.read(layer);
      EXPECT_EQ(rank.peek(layer + 1), static_cast<float>(12 - layer)) << "behind layer " << layer;
    }
  });
}

TEST(PrefetchedWeights, AreRoundedOnTheWay) {
  run_ranks(2, [](comm::ProcessGroup& group) {
    PrefetchingRank rank(group, DType::f16);
    rank.set(1.0f / 3);
    rank.begin();
    const std::array<int, 2> parameters = {6, 7};
    rank.weights.observer().weights_needed(parameters);
    EXPECT_EQ(kernels::to_float(*static_cast<const kernels::Half*>(rank.weights.view().parameter(6))), 0.333251953125f);
    const auto whole = rank.weights.gather_whole(*rank.stream);
    const auto weights = train::weights_within(*whole);
    for (const int parameter : {6, 7})
      EXPECT_EQ(kernels::to_float(*static_cast<const kernels::Half*>(weights.parameter(parameter))), 0.333251953125f);
  });
}

}  // namespace
}  // namespace gradring::tests
