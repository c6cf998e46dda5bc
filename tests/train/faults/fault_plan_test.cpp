// SPDX-License-Identifier: Apache-2.0
#include "train/faults/fault_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/data/support/message_of.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string told(const std::string& faults, const FaultedWorld& world) {
  std::string text;
  for (const PlannedFault& fault : plan_faults(parse_faults(faults), world)) text += to_string(fault) + "\n";
  return text;
}

TEST(FaultPlan, SaysWhatWillGoWrong) {
  EXPECT_EQ(told("kill:rank=1,step=20;delay:rank=0,step=3,ms=500;exit:rank=0,step=4,code=9", {.world_size = 2}),
            "kill, rank 1 in step 20\ndelay of 500 ms, rank 0 in step 3\nexit with code 9, rank 0 in step 4\n");
}

TEST(FaultPlan, DrawsByTheSeedAndOtherwiseForEachFaultAndAttempt) {
  const std::string faults = "kill:rank=any,step=20..40,seed=7;kill:rank=any,step=20..40,seed=7";
  const std::string first = told(faults, {.world_size = 64});
  EXPECT_EQ(told(faults, {.world_size = 64}), first);
  EXPECT_THAT(first, HasSubstr(" (seed 7)"));
  EXPECT_NE(first.substr(0, first.find('\n')), first.substr(first.find('\n') + 1)) << "two faults, two draws";

  std::set<std::int64_t> steps;
  std::set<int> ranks;
  for (int attempt = 0; attempt < 200; ++attempt) {
    const auto plan =
        plan_faults(parse_faults("stop:rank=any,step=20..22,attempt=every"), {.world_size = 3, .attempt = attempt});
    steps.insert(plan.at(0).step);
    ranks.insert(plan.at(0).rank);
  }
  EXPECT_THAT(steps, testing::ElementsAre(20, 21, 22));
  EXPECT_THAT(ranks, testing::ElementsAre(0, 1, 2));
}

TEST(FaultPlan, IsOfOneAttempt) {
  const std::string faults = "kill:rank=0,step=1;kill:rank=0,step=2,attempt=1;kill:rank=0,step=3,attempt=every";
  const auto steps_of = [&](int attempt) {
    std::vector<std::int64_t> steps;
    for (const PlannedFault& fault : plan_faults(parse_faults(faults), {.attempt = attempt}))
      steps.push_back(fault.step);
    return steps;
  };
  EXPECT_THAT(steps_of(0), testing::ElementsAre(1, 3));
  EXPECT_THAT(steps_of(1), testing::ElementsAre(2, 3));
  EXPECT_THAT(steps_of(2), testing::ElementsAre(3));
}

TEST(FaultPlan, RefusesRanksThatAreNotThereAndNansInRecordedSteps) {
  const auto refusal = [](const std::string& faults, const FaultedWorld& world) {
    return tests::message_of<UsageError>([&] { plan_faults(parse_faults(faults), world); });
  };
  EXPECT_THAT(refusal("kill:rank=2,step=1", {.world_size = 2}),
              HasSubstr("--inject names rank 2, but the ranks go from 0 to 1"));
  EXPECT_THAT(plan_faults(parse_faults("kill:rank=2,step=1"), {.world_size = 2, .attempt = 1}), IsEmpty())
      << "a world that has shrunk since";
  EXPECT_THAT(refusal("nan:rank=0,step=1", {.recorded = true}), HasSubstr("add --cuda-graph off"));
  EXPECT_EQ(plan_faults(parse_faults("kill:rank=0,step=1"), {.recorded = true}).size(), 1u);
}

}  // namespace
}  // namespace gradring::train
