// SPDX-License-Identifier: Apache-2.0
#include "tests/support/expect_close.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gradring::tests {

void expect_close(std::span<const double> actual, std::span<const double> expected,
                  const std::function<double(std::size_t)>& bound) {
  ASSERT_EQ(actual.size(), expected.size());
  std::size_t wrong = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const bool same = actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i]));
    if (same || std::fabs(actual[i] - expected[i]) <= bound(i)) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong)
    ADD_FAILURE() << wrong << " of " << actual.size() << " elements are wrong; the first, [" << first << "], is "
                  << actual[first] << " instead of " << expected[first] << " (allowed: " << bound(first) << ")";
}

void expect_equal(std::span<const double> actual, std::span<const double> expected) {
  expect_close(actual, expected, [](std::size_t) { return 0.0; });
}

void expect_gradient(const std::function<double(std::span<const double>)>& function, std::span<const double> at,
                     std::span<const double> gradient, double step, double tolerance, std::size_t limit) {
  ASSERT_EQ(at.size(), gradient.size());
  std::vector<double> point(at.begin(), at.end());
  const std::size_t stride = std::max<std::size_t>(1, at.size() / limit);
  for (std::size_t i = 0; i < at.size(); i += stride) {
    point[i] = at[i] + step;
    const double above = function(point);
    point[i] = at[i] - step;
    const double below = function(point);
    point[i] = at[i];
    EXPECT_NEAR(gradient[i], (above - below) / (2 * step), tolerance) << "argument " << i;
  }
}

}  // namespace gradring::tests
