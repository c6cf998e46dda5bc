// SPDX-License-Identifier: Apache-2.0
#include "train/core/faults/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/data/support/message_of.h"
#include "train/core/config/resolve.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string refusal(const std::string& text) {
  return tests::message_of<UsageError>([&] { parse_faults(text); });
}

TEST(Fault, EveryKindIsParsedAndPrinted) {
  const Fault kill{.kind = FaultKind::kill, .rank = 1, .first_step = 20, .last_step = 20};
  const Fault delay{.kind = FaultKind::delay,
                    .first_step = 20,
                    .last_step = 40,
                    .seed = 7,
                    .attempt = {},
                    .delay = std::chrono::milliseconds(500)};
  const Fault exit{.kind = FaultKind::exit, .rank = 0, .attempt = 2, .code = 9};
  EXPECT_THAT(parse_faults("kill:rank=1,step=20"), ElementsAre(kill));
  EXPECT_THAT(
      parse_faults("delay:step=20..40,rank=any,ms=500,seed=7,attempt=every;exit:rank=0,step=1,code=9,attempt=2"),
      ElementsAre(delay, exit));
  EXPECT_THAT(parse_faults("exit:rank=0,step=1"), ElementsAre(testing::Field(&Fault::code, 1)));
  EXPECT_THAT(parse_faults(""), IsEmpty());
  for (const std::string text :
       {"kill:rank=1,step=20", "stop:rank=any,step=3..5,seed=18446744073709551615", "nan:rank=0,step=1,attempt=every",
        "delay:rank=2,step=4,attempt=1,ms=20;exit:rank=any,step=7,code=0"})
    EXPECT_EQ(show_faults(parse_faults(text)), text);
}

TEST(Fault, InvalidTextIsRejectedWithItsReason) {
  EXPECT_THAT(refusal("kil:rank=1,step=2"), HasSubstr("Did you mean 'kill'?"));
  EXPECT_THAT(refusal("kill"), HasSubstr("--inject kill: rank and step are missing: expected kill:rank=R,step=N"));
  EXPECT_THAT(refusal("kill:rank=1"), HasSubstr("step is missing: expected step=N"));
  EXPECT_THAT(refusal("kill:step=1"), HasSubstr("rank is missing: expected rank=R"));
  EXPECT_THAT(refusal("kill:rank=1,step=0"), HasSubstr("--inject step is '0', but must be a whole number from 1"));
  EXPECT_THAT(refusal("kill:rank=1,step=5..4"), HasSubstr("--inject step is '4', but must be a whole number from 5"));
  EXPECT_THAT(refusal("kill:rank=1,step=5.."), HasSubstr("--inject step is ''"));
  EXPECT_THAT(refusal("kill:rank=-1,step=5"), HasSubstr("--inject rank is '-1'"));
  EXPECT_THAT(refusal("kill:rank=1,step=2,stp=3"), HasSubstr("unknown key 'stp'. Did you mean 'step'?"));
  EXPECT_THAT(refusal("kill:rank=1,step=2,ms=3"), HasSubstr("unknown key 'ms'"));
  EXPECT_THAT(refusal("kill:rank=1,step=2,rank=1"), HasSubstr("'rank' is given twice"));
  EXPECT_THAT(refusal("kill:rank=1,step"), HasSubstr("'step' is not KEY=VALUE"));
  EXPECT_THAT(refusal("delay:rank=1,step=2"), HasSubstr("ms is missing: expected ms=M"));
  EXPECT_THAT(refusal("exit:rank=1,step=2,code=256"), HasSubstr("--inject code is '256'"));
  EXPECT_THAT(refusal("kill:rank=1,step=2;"), HasSubstr("--inject is ''"));
}

TEST(Fault, IsReadFromOptionsAndWrittenToToml) {
  const std::string text = "kill:rank=1,step=2;nan:rank=any,step=3..4";
  const TrainConfig config = resolve({{"inject", text}}, {}, std::nullopt).config;
  EXPECT_EQ(show_faults(config.faults), text);
  EXPECT_THAT(to_toml(config), HasSubstr("inject = \"" + text + "\"\n"));
  EXPECT_THAT(to_toml(TrainConfig()), HasSubstr("inject = \"\"\n"));
}

std::string plan_text(const std::string& faults, const FaultedRun& run) {
  std::string text;
  for (const PlannedFault& fault : plan_faults(parse_faults(faults), run)) text += to_string(fault) + "\n";
  return text;
}

TEST(FaultPlan, PrintsEveryFault) {
  EXPECT_EQ(plan_text("kill:rank=1,step=20;delay:rank=0,step=3,ms=500;exit:rank=0,step=4,code=9", {.world_size = 2}),
            "kill, rank 1 in step 20\ndelay of 500 ms, rank 0 in step 3\nexit with code 9, rank 0 in step 4\n");
}

TEST(FaultPlan, DrawsDependOnSeedPositionAndAttempt) {
  const std::string faults = "kill:rank=any,step=20..40,seed=7;kill:rank=any,step=20..40,seed=7";
  const std::string first = plan_text(faults, {.world_size = 64});
  EXPECT_EQ(plan_text(faults, {.world_size = 64}), first);
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

TEST(FaultPlan, SelectsTheFaultsOfTheAttempt) {
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

TEST(FaultPlan, RejectsRanksOutsideTheWorldAndNanInRecordedSteps) {
  const auto plan_refusal = [](const std::string& faults, const FaultedRun& run) {
    return tests::message_of<UsageError>([&] { plan_faults(parse_faults(faults), run); });
  };
  EXPECT_THAT(plan_refusal("kill:rank=2,step=1", {.world_size = 2}),
              HasSubstr("--inject names rank 2, expected 0 to 1"));
  EXPECT_THAT(plan_faults(parse_faults("kill:rank=2,step=1"), {.world_size = 2, .attempt = 1}), IsEmpty())
      << "a world that has shrunk since";
  EXPECT_THAT(plan_refusal("nan:rank=0,step=1", {.recorded = true}), HasSubstr("add --cuda-graph off"));
  EXPECT_EQ(plan_faults(parse_faults("kill:rank=0,step=1"), {.recorded = true}).size(), 1u);
}

}  // namespace
}  // namespace gradring::train
