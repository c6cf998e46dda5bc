// SPDX-License-Identifier: Apache-2.0
#include "data/augment/lambdas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

namespace gradring::data {
namespace {

using kernels::gather_batch::kLambdas;
using kernels::gather_batch::kWholeWeight;

double weight(std::int32_t lambda) { return static_cast<double>(lambda) / kWholeWeight; }
double probability(std::size_t i) { return (static_cast<double>(i) + 0.5) / kLambdas; }

/// Beta(1, 1) is uniform, Beta(1/2, 1/2) the arcsine distribution, Beta(2, 2) has the distribution 3 x^2 - 2 x^3.
TEST(Lambdas, AreQuantilesOfBeta) {
  const auto uniform = lambdas_of({.mixup = 1000}), arcsine = lambdas_of({.mixup = 500}),
             two = lambdas_of({.cutmix = 2000});
  ASSERT_EQ(uniform.size(), kLambdas);
  for (std::size_t i = 0; i < kLambdas; ++i) {
    EXPECT_EQ(uniform[i], std::lround(probability(i) * kWholeWeight));
    const double sine = std::sin(probability(i) * std::numbers::pi / 2);
    EXPECT_NEAR(weight(arcsine[i]), sine * sine, 1.0 / kWholeWeight);
    const double x = weight(two[i]);
    EXPECT_NEAR(3 * x * x - 2 * x * x * x, probability(i), 2.0 / kWholeWeight);
  }
}

/// Variance of Beta(a, a): 1 / (8 a + 4).
TEST(Lambdas, AreSymmetricAndHaveTheVarianceOfBeta) {
  for (const int alpha : {1, 20, 200, 400, 999, 1001, 8000, 100000}) {
    const auto lambdas = lambdas_of({.mixup = alpha});
    EXPECT_TRUE(std::ranges::is_sorted(lambdas));
    EXPECT_GE(lambdas.front(), 0);
    double sum = 0;
    for (std::size_t i = 0; i < kLambdas; ++i) {
      EXPECT_EQ(lambdas[i] + lambdas[kLambdas - 1 - i], kWholeWeight);
      sum += (weight(lambdas[i]) - 0.5) * (weight(lambdas[i]) - 0.5);
    }
    const double expected = 1 / (8 * (alpha / 1000.0) + 4);
    EXPECT_NEAR(sum / kLambdas, expected, 2e-3 * expected) << alpha;
  }
}

TEST(Lambdas, OfBothAreThoseOfMixupThenThoseOfCutmix) {
  EXPECT_TRUE(lambdas_of({.crop = 2}).empty());
  auto both = lambdas_of({.mixup = 200});
  const auto cutmix = lambdas_of({.cutmix = 1000});
  both.insert(both.end(), cutmix.begin(), cutmix.end());
  EXPECT_EQ(lambdas_of({.mixup = 200, .cutmix = 1000}), both);
}

}  // namespace
}  // namespace gradring::data
