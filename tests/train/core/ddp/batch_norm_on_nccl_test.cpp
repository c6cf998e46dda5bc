// SPDX-License-Identifier: Apache-2.0
// Batch normalization over ranks by the NCCL transport, eager and captured, gives what one rank gives with all samples.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/comm/support/ranks.h"
#include "tests/comm/transports/nccl/nccl_ranks.h"
#include "tests/train/support/batch_norm_steps.h"

namespace gradring::tests {
namespace {

using Samples = std::vector<std::int64_t>;
using BatchNormCase = std::tuple<Samples, int, bool>;  // of each rank, stage, captured

TrainedSteps train_one_rank() {
  TrainedSteps trained;
  run_ranks(1, [&](comm::ProcessGroup& group) { trained = train_batch_norm(group, {TrainedSteps::kGlobalBatch}, {}); });
  return trained;
}

class BatchNormOnNccl : public testing::TestWithParam<BatchNormCase> {};

TEST_P(BatchNormOnNccl, GivesWhatOneRankGivesWithAllSamples) {
  const auto& [samples, zero, captured] = GetParam();
  const TrainedSteps one = train_one_rank();
  const RankRig::Options options{
      .buckets = {.first_bytes = 1, .rest_bytes = 400}, .zero = zero, .sync_batch_norm = true, .recorded = captured};
  NcclRanks ranks(static_cast<int>(samples.size()));
  const auto errors = errors_of_threads(
      static_cast<int>(samples.size()),
      [&](comm::ProcessGroup& group) {
        RankRig::Options mine = options;
        mine.device = &ranks.device(group.rank());
        TrainedSteps trained = train_batch_norm(group, samples, mine);
        if (group.rank() > 0) trained.buffers = one.buffers;  // only rank 0 saves them
        expect_same_steps(trained, one);
        EXPECT_EQ(ranks.device(group.rank()).graph_launches(), captured ? TrainedSteps::kSteps - 1 : 0);
      },
      [&](int rank) { return ranks.join_on_callers_streams(rank); });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

std::string case_name(const testing::TestParamInfo<BatchNormCase>& test) {
  const auto& [samples, zero, captured] = test.param;
  return fmt::format("{}Zero{}{}", fmt::join(samples, "_"), zero, captured ? "Captured" : "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, BatchNormOnNccl,
                         testing::Combine(testing::Values(Samples{12}, Samples{6, 6}, Samples{5, 7},
                                                          Samples{1, 7, 0, 4}),
                                          testing::Values(0, 3), testing::Bool()),
                         case_name);

}  // namespace
}  // namespace gradring::tests
