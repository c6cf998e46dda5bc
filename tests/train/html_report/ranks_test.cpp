// SPDX-License-Identifier: Apache-2.0
#include "train/html_report/sections.h"

#include <gmock/gmock.h>

#include "train/runs/rank_means.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RanksRecord record(std::int64_t steps, std::vector<double> seconds, std::vector<double> exposed) {
  const std::size_t ranks = seconds.size();
  return {.step = steps,
          .steps = steps,
          .seconds = std::move(seconds),
          .data_wait = std::vector<double>(ranks, 0.0),
          .exposed_communication = std::move(exposed),
          .memory = std::vector<double>(ranks, 1e6)};
}

RunHistory history_of(const std::vector<RanksRecord>& records) {
  RunHistory history;
  for (const RanksRecord& each : records) history.ranks.push_back({.time = 1, .record = each});
  return history;
}

TEST(Straggler, IsTheRankThatWaitsLeast) {
  const RunHistory history = history_of({record(10, {0.04, 0.04, 0.04}, {0.03, 0.001, 0.03})});
  EXPECT_EQ(straggler_of(rank_means(history.ranks))->rank, 1u);
  EXPECT_THAT(ranks_table(history), HasSubstr("Rank 1 is the straggler: its own time exceeds the median of the other "
                                              "ranks by 29 ms per step."));
}

TEST(Straggler, IsNobodyWhereAllWaitAlike) {
  const RunHistory history = history_of({record(10, {0.04, 0.04}, {0.010, 0.0109})});
  EXPECT_FALSE(straggler_of(rank_means(history.ranks)));
  EXPECT_THAT(ranks_table(history), Not(HasSubstr("<b class=\"badge warn\">")));
  EXPECT_FALSE(straggler_of(rank_means(history_of({record(10, {0.04}, {0})}).ranks)));
}

TEST(RankMeans, WeighEventsByTheirStepsAndLeaveOutOtherNumbersOfRanks) {
  const RunHistory history =
      history_of({record(10, {9, 9, 9}, {0, 0, 0}), record(30, {0.1, 0.1}, {0, 0}), record(10, {0.5, 0.5}, {0, 0})});
  const auto ranks = rank_means(history.ranks);
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_DOUBLE_EQ(ranks[0].seconds, 0.2);
  EXPECT_EQ(ranks[0].course.size(), 2u);
  EXPECT_TRUE(rank_means({}).empty());
}

}  // namespace
}  // namespace gradring::train
