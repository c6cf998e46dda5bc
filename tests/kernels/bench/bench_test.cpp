// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <numeric>

#include "kernels/base/error.h"
#include "kernels/bench/statistics.h"

namespace gradring::kernels::bench {
namespace {

TEST(Statistics, DescribesTheSortedValues) {
  const Statistics three = statistics_of({3, 1, 8});
  EXPECT_EQ(three.count, 3u);
  EXPECT_EQ(three.least, 1);
  EXPECT_EQ(three.median, 3);
  EXPECT_EQ(three.most, 8);
  EXPECT_EQ(three.mean, 4);
  EXPECT_EQ(statistics_of({4, 1}).median, 2.5);
}

TEST(Statistics, TakesPercentilesByNearestRank) {
  std::vector<double> values(200);
  std::iota(values.rbegin(), values.rend(), 1.0);
  EXPECT_EQ(statistics_of(values).p95, 190);
  EXPECT_EQ(statistics_of(values).p99, 198);
  EXPECT_EQ(statistics_of({7}).p95, 7);
  EXPECT_EQ(statistics_of({7, 9}).p99, 9);
}

TEST(Statistics, RejectsAnEmptyList) { EXPECT_THROW(statistics_of({}), InvalidArgument); }

}  // namespace
}  // namespace gradring::kernels::bench
