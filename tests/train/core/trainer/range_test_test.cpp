// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/range_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "train/core/optim/optimizer.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr RangeTestSpec kSpec{.least = 1e-5, .most = 1, .steps = 40};

double rate(std::int64_t step) {
  const TrainConfig config = range_test_config({}, kSpec);
  return learning_rate_at(config.schedule, config.learning_rate, kSpec.steps, step);
}

/// Losses that fall around a rate of 10^-2.5, and rise by `rise` for each unit above a rate of 0.3.
double loss(double rate, double rise) {
  return 2.3 - 2 / (1 + std::exp(-3 * (std::log10(rate) + 2.5))) + (rate > 0.3 ? rise * (rate - 0.3) : 0);
}

RangeTest measured(double rise) {
  RangeTest test(kSpec);
  for (std::int64_t step = 0; step < kSpec.steps && !test.is_over(); ++step)
    test.event(StepRecord{.step = step + 1, .loss = loss(rate(step), rise), .learning_rate = rate(step)});
  return test;
}

TEST(RangeTest, GoesFromLeastToMostByEqualFactors) {
  EXPECT_NEAR(rate(0), 1e-5, 1e-12);
  EXPECT_NEAR(rate(39), 1, 1e-9);
  for (std::int64_t step = 1; step < 40; ++step)
    EXPECT_NEAR(rate(step) / rate(step - 1), std::pow(1e5, 1.0 / 39), 1e-9);
}

TEST(RangeTest, KeepsTheRatiosOfGroups) {
  TrainConfig training;
  training.learning_rate = 0.5;
  training.optimizer.groups = {{.pattern = "*.bias", .learning_rate = 2, .epochs = 1},
                               {.pattern = "fc*", .learning_rate = 0}};
  const TrainConfig config = range_test_config(training, kSpec);
  const std::vector<ParameterGroup> groups = {
      {}, {.learning_rate = config.optimizer.groups[0].learning_rate}, {.learning_rate = 0}};
  EXPECT_FALSE(config.optimizer.groups[0].epochs);
  const std::vector<float> rates =
      learning_rates(groups, config.schedule, config.learning_rate, {.total = kSpec.steps, .of_epoch = 3});
  const auto steps = static_cast<std::size_t>(kSpec.steps);
  ASSERT_EQ(rates.size(), 3 * steps);
  for (std::size_t step = 0; step < steps; ++step) {
    EXPECT_NEAR(rates[step], rate(static_cast<std::int64_t>(step)), 1e-6 * rates[step]);
    EXPECT_NEAR(rates[steps + step] / rates[step], 4, 1e-5) << step;
    EXPECT_EQ(rates[2 * steps + step], 0);
  }
  training.learning_rate = 0;
  EXPECT_THROW(range_test_config(training, kSpec), UsageError);
}

// Values of fastai's rules, by a program that repeats SmoothLoss, LRFinder.after_batch and steep in Python.
TEST(RangeTest, SuggestsWhatFastaiDoes) {
  const RangeTest test = measured(40);
  EXPECT_FALSE(test.diverged());
  EXPECT_EQ(test.points().size(), 40u);
  ASSERT_TRUE(test.steepest());
  EXPECT_NEAR(test.steepest()->learning_rate, 0.008886238, 1e-8);
  EXPECT_EQ(test.steepest()->step, 24);
  EXPECT_NEAR(test.points()[10].smoothed, 2.284811271, 1e-8);
  EXPECT_NEAR(test.points().back().smoothed, 3.264784219, 1e-8);
  EXPECT_NEAR(test.least_loss()->learning_rate, 0.307029063, 1e-8);
}

TEST(RangeTest, EndsWhereTheLossDiverges) {
  const RangeTest test = measured(4000);
  EXPECT_TRUE(test.diverged());
  EXPECT_EQ(test.points().back().step, 37);
  EXPECT_NEAR(test.steepest()->learning_rate, 0.008886238, 1e-8);
}

TEST(RangeTest, EndsAtALossOrGradientThatIsNotFinite) {
  RangeTest test(kSpec);
  test.event(StepRecord{.step = 1, .loss = 2.3, .learning_rate = rate(0)});
  test.event(StepRecord{.step = 2, .loss = 2.3, .learning_rate = rate(1), .loss_scale = 65536, .skipped = true});
  EXPECT_EQ(test.take(), RunRequest::none) << "the loss scale was too large";
  EXPECT_EQ(test.points().size(), 1u);
  RangeTest skipped = test;
  skipped.event(StepRecord{.step = 3, .loss = 2.3, .learning_rate = rate(1), .skipped = true});
  EXPECT_EQ(skipped.take(), RunRequest::stop);
  test.event(StepRecord{.step = 3, .loss = std::numeric_limits<double>::quiet_NaN(), .learning_rate = rate(1)});
  EXPECT_EQ(test.take(), RunRequest::stop);
  EXPECT_TRUE(test.diverged());
  EXPECT_FALSE(test.steepest()) << "too few points";
}

TEST(RangeTest, DoesNotTakeTheRecoveryFromASpikeForADescent) {
  RangeTest test(kSpec);
  for (std::int64_t step = 0; step < kSpec.steps; ++step)
    test.event(
        StepRecord{.step = step + 1, .loss = step == 32 ? 60 : loss(rate(step), 0), .learning_rate = rate(step)});
  ASSERT_FALSE(test.diverged());
  EXPECT_NEAR(test.steepest()->learning_rate, 0.008886238, 1e-8) << "where the loss fell before";
}

TEST(RangeTest, SuggestsNothingWhereNoLossFalls) {
  RangeTest test(kSpec);
  for (std::int64_t step = 0; step < kSpec.steps; ++step)
    test.event(
        StepRecord{.step = step + 1, .loss = 2.3 + 0.001 * static_cast<double>(step), .learning_rate = rate(step)});
  EXPECT_EQ(test.take(), RunRequest::stop) << "all steps were made";
  EXPECT_FALSE(test.steepest());
}

}  // namespace
}  // namespace gradring::train
