// SPDX-License-Identifier: Apache-2.0
#include "train/bench/result_diff.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/base/error.h"
#include "kernels/bench/statistics.h"

namespace gradring::train::bench {
namespace {

using Values = std::vector<double>;

/// The values of scipy 1.17.1: scipy.stats.mannwhitneyu(one, other).pvalue.
TEST(RankTest, AgreesWithScipy) {
  EXPECT_NEAR(rank_test(Values{1, 2, 3, 4, 5}, Values{6, 7, 8, 9, 10}), 0.007936507936507936, 1e-15);
  EXPECT_NEAR(rank_test(Values{1.5, 2.5, 3.5}, Values{1, 2, 3, 4, 9}), 0.7857142857142857, 1e-15);
  EXPECT_NEAR(rank_test(Values{1, 3, 5, 7, 11, 13}, Values{2, 4, 6, 8}), 0.7619047619047619, 1e-15);
  EXPECT_NEAR(rank_test(Values{1, 1, 2, 3, 3, 3, 5}, Values{2, 2, 3, 4, 4}), 0.5585493131564241, 1e-12) << "ties";
  EXPECT_EQ(rank_test(Values{2, 2, 2}, Values{2, 2}), 1);
  Values many, others;
  for (int i = 0; i < 12; ++i) many.push_back(100 + 7 * i % 13);
  for (int i = 0; i < 11; ++i) others.push_back(103.5 + 5 * i % 11);
  EXPECT_NEAR(rank_test(many, others), 0.14808606158507112, 1e-12)
      << "no ties, but too many for the exact distribution";
}

TEST(RankTest, IsSymmetricAndNeedsValues) {
  EXPECT_EQ(rank_test(Values{6, 7, 9, 8}, Values{1, 2, 7.5}), rank_test(Values{1, 2, 7.5}, Values{6, 7, 9, 8}));
  EXPECT_THROW(rank_test(Values{}, Values{1}), InvalidArgument);
}

/// scipy.stats.median_abs_deviation(values, scale="normal") of scipy 1.17.1.
TEST(Spread, AgreesWithScipy) {
  EXPECT_NEAR(kernels::bench::statistics_of({1, 2, 4, 8, 16}).spread, 4.447806655516806, 1e-14);
  const auto statistics = kernels::bench::statistics_of({3, 1, 4, 1, 5, 9});
  EXPECT_NEAR(statistics.spread, 2.965204437011204, 1e-14);
  EXPECT_NEAR(statistics.noise(), 2.965204437011204 / 3.5, 1e-14);
  EXPECT_EQ(statistics.samples, (Values{3, 1, 4, 1, 5, 9})) << "in their order";
}

}  // namespace
}  // namespace gradring::train::bench
