// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/run_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "train/core/config/resolve.h"

namespace gradring::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RateSchedule cosine(std::int64_t steps) {
  return {.spec = {.kind = ScheduleKind::cosine}, .peak = 1e-3, .steps = steps};
}
RateSchedule constant(double rate) { return {.spec = {}, .peak = rate, .steps = 20}; }

std::string change(const RateSchedule& before, const RateSchedule& now, std::int64_t applied) {
  return describe_rate_change({.before = before, .now = now, .applied = applied, .steps = applied});
}

TEST(RateChange, OfALongerCosineNamesBothRatesTheReasonAndHowToKeepTheRate) {
  EXPECT_EQ(change(cosine(20), cosine(40), 20),
            "the learning rate was 6.2e-06 in step 20 and is 5.0e-04 in step 21: the cosine schedule spans 40 steps "
            "instead of 20; --schedule constant --lr 6.16e-06 would keep it");
  EXPECT_THAT(change(cosine(20), cosine(40), 5), AllOf(HasSubstr("was 9.0e-04 in step 5 and is 9.6e-04 in step 6")));
}

TEST(RateChange, SaysHowToGoOnWhereTheScheduleLeavesAUselessRate) {
  EXPECT_EQ(change(cosine(210), cosine(420), 210),
            "the learning rate was 5.6e-08 in step 210 and is 5.0e-04 in step 211: the cosine schedule spans 420 steps "
            "instead of 210; --schedule constant --lr 0.0001 would go on at a tenth of the peak");
  EXPECT_THAT(change(cosine(210), cosine(211), 210),
              AllOf(HasSubstr("is 5.5e-08 in step 211"), HasSubstr("--schedule constant --lr 0.0001 would go on")));
  const RateSchedule step{
      .spec = {.kind = ScheduleKind::step, .step_size = 4, .gamma = 0.1}, .peak = 1e-3, .steps = 20};
  RateSchedule longer = step;
  EXPECT_EQ(change(step, longer, 19), "") << "as it was planned";
  longer.steps = 40;
  EXPECT_EQ(change(step, longer, 20),
            "the learning rate was 1.0e-07 in step 20 and is 1.0e-08 in step 21: the schedule has come down to it; "
            "--schedule constant --lr 0.0001 would go on at a tenth of the peak");
  EXPECT_EQ(change(cosine(210), constant(1e-4), 210).find("would"), std::string::npos) << "the advice was followed";
}

TEST(RateChange, NamesEveryReason) {
  EXPECT_EQ(change(constant(1e-3), constant(2e-3), 7),
            "the learning rate was 1.0e-03 in step 7 and is 2.0e-03 in step 8: --lr is 0.002 instead of 0.001");
  EXPECT_THAT(change(cosine(20), constant(1e-3), 10), HasSubstr("--schedule is constant instead of cosine"));
  RateSchedule least = cosine(20);
  least.spec.least = 1e-4;
  EXPECT_THAT(change(cosine(20), least, 10),
              AllOf(HasSubstr("the cosine schedule has other options"), Not(HasSubstr("spans"))));
}

TEST(RateChange, IsSilentWhereTheRateGoesOn) {
  EXPECT_EQ(change(cosine(20), cosine(20), 10), "");
  EXPECT_EQ(change(constant(1e-3), {.spec = {}, .peak = 1e-3, .steps = 99}, 20), "") << "a longer constant";
  EXPECT_EQ(change(cosine(20), {.spec = {}, .peak = cosine(20).at(19), .steps = 40}, 20), "")
      << "the advice of the remark";
  EXPECT_EQ(change(constant(1e-3), constant(2e-3), 0), "") << "nothing was trained before";
  const RateSchedule step{
      .spec = {.kind = ScheduleKind::step, .step_size = 4, .gamma = 0.5}, .peak = 1e-3, .steps = 20};
  RateSchedule longer = step;
  longer.steps = 40;
  EXPECT_EQ(change(step, longer, 20), "") << "the decay that is due anyway";
}

TEST(RateChange, IgnoresAScheduleThatIsInvalid) {
  EXPECT_EQ(change({.spec = {.kind = ScheduleKind::step, .step_size = 0}, .peak = 1, .steps = 20}, constant(1), 5), "");
  EXPECT_EQ(change({.spec = {.warmup_steps = 30}, .peak = 1, .steps = 20}, constant(2), 5), "");
}

Checkpoint saved(const TrainConfig& config, const nlohmann::ordered_json& more) {
  nlohmann::ordered_json about = {{"settings", to_toml(config)}};
  about.update(more);
  return {.step = 3, .model = {}, .state = {}, .about = about, .score = {}};
}

TEST(SavedSchedule, IsThatOfTheRun) {
  TrainConfig config{.epochs = 2, .learning_rate = 0.125};
  config.schedule = {.kind = ScheduleKind::cosine, .warmup_steps = 3, .least = 0.01};
  const Checkpoint checkpoint = saved(config, {{"total_steps", 26}});
  const RateSchedule schedule = saved_schedule(checkpoint, saved_config(checkpoint, "step-3"));
  EXPECT_EQ(schedule.spec.kind, ScheduleKind::cosine);
  EXPECT_EQ(schedule.spec.warmup_steps, 3);
  EXPECT_EQ(schedule.peak, 0.125);
  EXPECT_EQ(schedule.steps, 26);
}

TEST(SavedSchedule, EstimatesTheStepsOfAnEarlierVersion) {
  const auto steps = [](const TrainConfig& config) {
    const Checkpoint checkpoint = saved(config, {{"samples_of_step", 16}, {"order", {{"samples", 200}}}});
    return saved_schedule(checkpoint, config).steps;
  };
  EXPECT_EQ(steps({.epochs = 2}), 26);
  EXPECT_EQ(steps({.epochs = 2, .steps = 20}), 20);
  EXPECT_EQ(steps({.epochs = 0, .steps = 40}), 40);
}

}  // namespace
}  // namespace gradring::train
