// SPDX-License-Identifier: Apache-2.0
#include "train/view/html_report/sections.h"

#include <gmock/gmock.h>

#include <limits>

#include "train/view/runs/rank_means.h"

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

TEST(RankMeans, TakeNaNAsNoValue) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> seconds(1000, kNaN);
  seconds[500] = 0.5;
  const auto ranks = rank_means(history_of({record(10, seconds, std::vector<double>(1000, kNaN))}).ranks);
  EXPECT_EQ(ranks[499].own(), 0);
  EXPECT_EQ(ranks[500].own(), 0.5);
  EXPECT_EQ(straggler_of(ranks)->rank, 500u);
}

TEST(RanksTable, OfManyRanksHasAllInFewRows) {
  constexpr std::size_t kMany = 100'000;
  std::vector<double> seconds(kMany, 0.04), exposed(kMany, 0.02);
  for (std::size_t rank = 0; rank < kMany; ++rank) exposed[rank] = 0.02 - 1e-7 * static_cast<double>(rank % 1000);
  exposed[77'777] = 0;
  const std::string page = ranks_table(history_of({record(10, seconds, exposed)}));
  EXPECT_LT(page.size(), 100'000u);
  for (const char* part : {"All 100,000 ranks", "The 64 ranks of the longest own time", "Rank 77777 is the straggler",
                           "<td>77777 <b", "<td>999</td>", "<td>Own time</td><td class=\"number\">20 ms</td>"})
    EXPECT_NE(page.find(part), page.npos) << part;
  EXPECT_EQ(page.find("<td>0</td>"), page.npos);
  EXPECT_THAT(ranks_table(history_of({record(1, std::vector<double>(64, 1), std::vector<double>(64, 0))})),
              Not(HasSubstr("All 64 ranks")));
}

}  // namespace
}  // namespace gradring::train
