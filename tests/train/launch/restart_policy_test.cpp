// SPDX-License-Identifier: Apache-2.0
#include "train/launch/restart_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradring::train {
namespace {

using std::chrono::milliseconds;

constexpr int kFailed = 1;

TEST(RestartPolicy, StartsNothingAgainUnlessToldTo) {
  RestartPolicy policy({});
  const auto next = policy.after_failure(kFailed, 100);
  EXPECT_FALSE(next.again);
  EXPECT_EQ(next.reason, "");
}

TEST(RestartPolicy, HasABudget) {
  RestartPolicy policy({.most = 2});
  EXPECT_TRUE(policy.after_failure(kFailed, {}).again);
  EXPECT_TRUE(policy.after_failure(kFailed, {}).again);
  EXPECT_EQ(policy.restarts(), 2);
  const auto last = policy.after_failure(kFailed, {});
  EXPECT_FALSE(last.again);
  EXPECT_EQ(last.reason, "all 2 restarts are used up");
}

TEST(RestartPolicy, BacksOffWithoutProgress) {
  RestartPolicy policy({.most = 9, .first_backoff = milliseconds(100), .longest_backoff = milliseconds(350)});
  for (const int expected : {0, 100, 200, 350, 350})
    EXPECT_EQ(policy.after_failure(kFailed, {}).wait, milliseconds(expected));
}

TEST(RestartPolicy, ProgressEndsTheBackoff) {
  RestartPolicy policy({.most = 9, .first_backoff = milliseconds(100), .longest_backoff = milliseconds(350)});
  std::vector<int> waits;
  for (const int step : {10, 10, 10, 20, 20}) waits.push_back(int(policy.after_failure(kFailed, step).wait.count()));
  EXPECT_THAT(waits, ::testing::ElementsAre(0, 0, 100, 0, 0));
}

TEST(RestartPolicy, ACrashLoopEndsEarly) {
  RestartPolicy policy({.most = 100});
  EXPECT_TRUE(policy.after_failure(kFailed, 40).again);  // it came to step 40
  EXPECT_TRUE(policy.after_failure(kFailed, 40).again);
  EXPECT_TRUE(policy.after_failure(kFailed, 40).again);
  const auto last = policy.after_failure(kFailed, 40);
  EXPECT_FALSE(last.again);
  EXPECT_EQ(last.reason, "3 attempts in a row came less than 1 steps further");
}

TEST(RestartPolicy, WhoReportsNothingHasOnlyTheBudget) {
  RestartPolicy policy({.most = 10});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(policy.after_failure(kFailed, {}).again) << i;
}

TEST(RestartPolicy, UnlessProgressIsAskedFor) {
  RestartPolicy policy({.most = 10, .min_progress_steps = 5});
  EXPECT_TRUE(policy.after_failure(kFailed, {}).again);
  EXPECT_TRUE(policy.after_failure(kFailed, 4).again);
  EXPECT_FALSE(policy.after_failure(kFailed, 4).again);
}

TEST(RestartPolicy, SmallProgressAddsUp) {
  RestartPolicy policy({.most = 10, .min_progress_steps = 5});
  for (const int step : {2, 4, 6, 8, 10, 12}) EXPECT_TRUE(policy.after_failure(kFailed, step).again) << step;
}

TEST(RestartPolicy, ZeroAsksForNoProgress) {
  RestartPolicy policy({.most = 10, .min_progress_steps = 0});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(policy.after_failure(kFailed, 7).again) << i;
}

TEST(RestartPolicy, WhatWouldOnlyComeAgainIsNotRepeated) {
  RestartPolicy policy({.most = 10, .final_codes = {2, 4}});
  EXPECT_TRUE(policy.after_failure(3, {}).again);
  EXPECT_EQ(policy.after_failure(4, {}).reason, "code 4 is no end that another attempt could mend");
}

}  // namespace
}  // namespace gradring::train
