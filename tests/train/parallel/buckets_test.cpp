// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/buckets.h"

#include <gtest/gtest.h>

#include "nn/program/program.h"

namespace gradring::train {
namespace {

using Buckets = std::vector<std::vector<int>>;

Buckets convnet_buckets(const BucketLimits& limits) {
  const nn::Model model = nn::convnet({28, 28, 1}, 10);
  return make_buckets(nn::parameters_of(model), nn::Program::ready_order(model), limits);
}

TEST(Buckets, TheConvNetHasTwoByPyTorchsLimits) {
  EXPECT_EQ(convnet_buckets({}), (Buckets{{7, 6, 5, 4}, {3, 2, 1, 0}}));
}

TEST(Buckets, TheFirstLimitHoldsForTheFirstBucketAlone) {
  // fc2.b 40 B, fc2.w 10,240 B | fc1.b 1,024 B, fc1.w 1,638,400 B | the convolutions, 75,264 B
  EXPECT_EQ(convnet_buckets({.first_bytes = 10'000, .rest_bytes = 1'000'000}), (Buckets{{7, 6}, {5, 4}, {3, 2, 1, 0}}));
}

TEST(Buckets, ATinyLimitGivesOneTensorEach) {
  EXPECT_EQ(convnet_buckets({.first_bytes = 1, .rest_bytes = 1}), (Buckets{{7}, {6}, {5}, {4}, {3}, {2}, {1}, {0}}));
}

TEST(Buckets, NoParametersGiveNone) { EXPECT_TRUE(make_buckets({}, {}, {}).empty()); }

}  // namespace
}  // namespace gradring::train
