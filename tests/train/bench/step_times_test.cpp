// SPDX-License-Identifier: Apache-2.0
#include "train/bench/step_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/error.h"

namespace gradring::train::bench {
namespace {

using ::testing::ElementsAre;
using Duration = StepTimes::Duration;

std::vector<std::string> names_of(const StepTimes::Table& table) {
  std::vector<std::string> names;
  for (const StepTimes::Part& part : table.parts) names.push_back(part.name);
  return names;
}

TEST(StepTimes, GiveEachPartItsShareAndTheRestWhatIsLeft) {
  StepTimes times;
  for (const double extra : {0.0, 1.0, 2.0}) {
    times.add("forward", Duration(3 + extra));
    times.add("copies", Duration(1));
    times.add("copies", Duration(0.5));
    times.end_step(Duration(10 + extra));
  }
  const StepTimes::Table table = times.table();
  EXPECT_THAT(names_of(table), ElementsAre("forward", "copies", "the rest"));
  EXPECT_EQ(table.step.median, 11);
  EXPECT_EQ(table.parts[0].seconds.median, 4);
  EXPECT_EQ(table.parts[1].seconds.median, 1.5);
  EXPECT_EQ(table.parts[2].seconds.most, 5.5);
}

TEST(StepTimes, APartThatDoesNotRunInAStepTakesNoTimeInIt) {
  StepTimes times;
  times.end_step(Duration(1));
  times.add("late", Duration(2));
  times.end_step(Duration(4));
  times.end_step(Duration(1));
  const StepTimes::Table table = times.table();
  EXPECT_EQ(table.parts[0].seconds.count, 3u);
  EXPECT_EQ(table.parts[0].seconds.median, 0);
  EXPECT_EQ(table.parts[0].seconds.most, 2);
  EXPECT_EQ(table.parts[1].seconds.most, 2);
}

TEST(StepTimes, ForgetTheStepsThatWarmUp) {
  StepTimes times;
  times.add("compiling", Duration(100));
  times.end_step(Duration(100));
  times.clear();
  times.add("forward", Duration(1));
  times.end_step(Duration(1));
  EXPECT_THAT(names_of(times.table()), ElementsAre("forward", "the rest"));
  EXPECT_EQ(times.table().step.most, 1);
}

TEST(StepTimes, OfNoStepsAreRejected) { EXPECT_THROW(StepTimes().table(), InvalidArgument); }

}  // namespace
}  // namespace gradring::train::bench
