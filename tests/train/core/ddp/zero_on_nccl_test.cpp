// SPDX-License-Identifier: Apache-2.0
// Training over the NCCL transport, eager and captured, gives the bits of ranks that share memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "data/datasets/open_dataset.h"
#include "tests/comm/support/ranks.h"
#include "tests/comm/transports/nccl/nccl_ranks.h"
#include "tests/train/support/rank_rig.h"

namespace gradring::tests {
namespace {

using kernels::DType;

constexpr std::int64_t kGlobalBatch = 40;  // of 2, 5 or 8 ranks
constexpr int kSteps = 4;                  // captured: the first runs eagerly, the others as a graph

using Weights = std::vector<std::vector<float>>;
using Case = std::tuple<int, DType, bool, int>;  // stage, precision, captured, world

/// Trains this rank on its part of the first batches; returns all weights.
Weights train(comm::ProcessGroup& group, const RankRig::Options& options) {
  static const auto dataset = data::open_dataset("digits", data::Split::train, "");
  RankRig rig(group, *dataset, options);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    std::vector<std::int64_t> indices;
    for (std::int64_t i = group.rank(); i < kGlobalBatch; i += group.world_size())
      indices.push_back(step * kGlobalBatch + i);
    rig.step(indices, kGlobalBatch);
  }
  return rig.weights();
}

class ZeroOnNccl : public testing::TestWithParam<Case> {};

TEST_P(ZeroOnNccl, TrainsLikeRanksThatShareMemory) {
  const auto& [zero, precision, captured, world] = GetParam();
  RankRig::Options options;
  options.optimizer = {.kind = train::OptimizerKind::adam};
  options.max_batch = kGlobalBatch / world;
  options.buckets = {.first_bytes = 1, .rest_bytes = 40'000};
  options.zero = zero;
  options.precision = options.wire.dtype = precision;
  options.recorded = captured;
  if (precision == DType::f16) options.loss_scaling = {.dynamic = true, .initial = 0x1p10f};

  Weights expected;
  run_ranks(world, [&](comm::ProcessGroup& group) {
    Weights weights = train(group, options);
    if (group.rank() == 0) expected = std::move(weights);
  });

  NcclRanks ranks(world);
  const auto errors = errors_of_threads(
      world,
      [&](comm::ProcessGroup& group) {
        RankRig::Options mine = options;
        mine.device = &ranks.device(group.rank());
        EXPECT_EQ(train(group, mine), expected) << "rank " << group.rank();
        EXPECT_EQ(ranks.device(group.rank()).graph_launches(), captured ? kSteps - 1 : 0) << "rank " << group.rank();
      },
      [&](int rank) { return ranks.join_on_callers_streams(rank); });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

std::string name_of(const testing::TestParamInfo<Case>& test) {
  const auto& [zero, precision, captured, world] = test.param;
  return fmt::format("Zero{}{}{}On{}", zero, precision == DType::f32 ? "F32" : "F16", captured ? "Captured" : "",
                     world);
}

INSTANTIATE_TEST_SUITE_P(TwoRanks, ZeroOnNccl,
                         testing::Combine(testing::Values(0, 1, 2, 3), testing::Values(DType::f32, DType::f16),
                                          testing::Bool(), testing::Values(2)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(MoreRanks, ZeroOnNccl,
                         testing::Combine(testing::Values(0, 3), testing::Values(DType::f16), testing::Bool(),
                                          testing::Values(5, 8)),
                         name_of);

}  // namespace
}  // namespace gradring::tests
