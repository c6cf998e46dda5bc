// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/data/support/message_of.h"
#include "train/core/trainer/nan_policy.h"
#include "train/core/trainer/train_step.h"

namespace gradring::tests {
namespace {

using ::testing::HasSubstr;
using train::DivergedError;
using train::NanPolicy;
using train::OnNan;
using train::StepResult;

const std::vector<nn::Parameter> kParameters = {{.name = "fc.weight", .shape = {2, 2}, .torch_shape = {2, 2}},
                                                {.name = "fc.bias", .shape = {2}, .torch_shape = {2}}};

/// "on", "back" or "end".
std::string action(const char* on_nan, bool scales, const StepResult& result) {
  const NanPolicy policy({.on_nan = train::parse_choice<OnNan>("on-nan", on_nan),
                          .scales_loss = scales,
                          .learning_rate = 0.5,
                          .parameters = kParameters});
  switch (policy.action_for(result)) {
    case NanPolicy::Action::proceed: return "on";
    case NanPolicy::Action::roll_back: return "back";
    case NanPolicy::Action::end: return "end";
  }
  return "";
}

TEST(NanPolicy, EndsARunWhoseEveryStepWasSkipped) {
  const auto end = [](bool scales, std::int32_t applied, std::int32_t skipped) {
    const NanPolicy policy({.scales_loss = scales, .learning_rate = 0.5, .parameters = kParameters});
    policy.check_updates({.applied_steps = applied, .loss_scale = 64, .skipped_steps = skipped});
  };
  EXPECT_NO_THROW(end(true, 1, 9));
  EXPECT_NO_THROW(end(true, 0, 0)) << "nothing was left to train";
  EXPECT_THAT(message_of<DivergedError>([&] { end(true, 0, 9); }),
              ::testing::AllOf(HasSubstr("no weight has changed: the gradients of all 9 steps were not finite"),
                               HasSubstr("the loss scale fell to 64: lower --loss-scale")));
  EXPECT_THAT(message_of<DivergedError>([&] { end(false, 0, 9); }), HasSubstr("lower --lr (now 0.5)"));
}

TEST(NanPolicy, FollowsTheTable) {
  const double nan = std::nan(""), fine = 2;
  const float scale = 1024, least = train::kLeastLossScale;
  const auto good = [&](double loss) { return StepResult{.loss = loss, .loss_scale = scale}; };
  const auto bad = [&](double loss, float at) { return StepResult{.loss = loss, .loss_scale = at, .skipped = true}; };
  struct Row {
    const char* on_nan;
    bool scales;
    const char *good, *bad_loss, *skipped, *skipped_without_loss, *skipped_at_the_least;
  };
  for (const Row& row :
       {Row{"auto", false, "on", "end", "end", "end", "end"}, Row{"auto", true, "on", "end", "on", "on", "end"},
        Row{"skip", false, "on", "end", "on", "on", "on"}, Row{"skip", true, "on", "end", "on", "on", "end"},
        Row{"halt", false, "on", "end", "end", "end", "end"}, Row{"halt", true, "on", "end", "end", "end", "end"},
        Row{"rollback", false, "on", "back", "back", "back", "back"},
        Row{"rollback", true, "on", "back", "on", "back", "back"}}) {
    SCOPED_TRACE(std::string(row.on_nan) + (row.scales ? " with a loss scale" : ""));
    EXPECT_EQ(action(row.on_nan, row.scales, good(fine)), row.good);
    EXPECT_EQ(action(row.on_nan, row.scales, good(nan)), row.bad_loss);
    EXPECT_EQ(action(row.on_nan, row.scales, bad(fine, scale)), row.skipped);
    EXPECT_EQ(action(row.on_nan, row.scales, bad(nan, scale)), row.skipped_without_loss);
    EXPECT_EQ(action(row.on_nan, row.scales, bad(fine, least)), row.skipped_at_the_least);
  }
  EXPECT_THROW(train::parse_choice<OnNan>("on-nan", "ignore"), InvalidArgument);
}

TEST(NanPolicy, NamesStepAndParameterAndRemedy) {
  const NanPolicy policy(
      {.on_nan = OnNan::halt, .scales_loss = false, .learning_rate = 0.5, .parameters = kParameters});
  const StepResult known{.loss = 1, .skipped = true, .non_finite = 1};
  EXPECT_EQ(message_of<DivergedError>([&] { policy.end(12, known); }),
            "the gradients of step 12 are not finite, first in fc.bias (in backward order): lower --lr (now 0.5)");
  EXPECT_EQ(policy.problem_of(12, {.loss = 1, .skipped = true}), "the gradients of step 12 are not finite");
  EXPECT_EQ(policy.problem_of(12, {.loss = std::nan("")}), "the loss of step 12 is NaN");
  EXPECT_EQ(policy.parameter_of({}), "");
}

TEST(RollbackLimit, EndsTheRunAfterThreeRollbacksWithoutProgress) {
  train::RollbackLimit rollbacks;
  for (int time = 0; time < train::RollbackLimit::kMost; ++time) rollbacks.count(20, "problem");
  rollbacks.saved(19);
  EXPECT_THAT(message_of<DivergedError>([&] { rollbacks.count(20, "the problem"); }),
              HasSubstr("the problem, and 3 rollbacks"));
  rollbacks.saved(20);
  EXPECT_EQ(rollbacks.made(), 0);
  rollbacks.count(30, "problem");
  EXPECT_EQ(rollbacks.made(), 1);
}

}  // namespace
}  // namespace gradring::tests
