// SPDX-License-Identifier: Apache-2.0
#include "train/bench/confidence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/base/error.h"

namespace gradring::train::bench {
namespace {

/// scipy.stats.t.interval(0.95, 4, loc=mean, scale=sem) of these values gives 93.97 +- 0.17272.
TEST(Confidence, IsThatOfStudentsT) {
  const MeanOf of = mean_of(std::vector<double>{93.85, 94.01, 94.12, 93.80, 94.07});
  EXPECT_EQ(of.count, 5u);
  EXPECT_NEAR(of.mean, 93.97, 1e-12);
  EXPECT_NEAR(of.deviation, 0.139104, 1e-6);
  EXPECT_NEAR(of.half_width, 0.172721, 1e-4);
  EXPECT_EQ(interval_text(of), "± 0.173");
}

TEST(Confidence, OfOneValueIsUnknown) {
  const MeanOf of = mean_of(std::vector<double>{7});
  EXPECT_EQ(of.mean, 7);
  EXPECT_EQ(of.deviation, 0);
  EXPECT_TRUE(std::isinf(of.half_width));
  EXPECT_EQ(interval_text(of), "-");
  EXPECT_THROW(mean_of({}), InvalidArgument);
}

TEST(Confidence, TheQuantilesFallToThatOfTheNormalDistribution) {
  EXPECT_EQ(student_t(2), 4.303);
  for (std::size_t degrees = 1; degrees < 200; ++degrees) EXPECT_GT(student_t(degrees), student_t(degrees + 1));
  EXPECT_NEAR(student_t(31), 2.0395, 0.0005);
  EXPECT_NEAR(student_t(60), 2.0003, 0.001);
  EXPECT_NEAR(student_t(1000000), 1.95996, 1e-4);
}

}  // namespace
}  // namespace gradring::train::bench
