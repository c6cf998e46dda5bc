// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/data/support/message_of.h"
#include "train/precision/loss_scaling.h"
#include "train/trainer/on_nan.h"

namespace gradring::tests {
namespace {

using ::testing::HasSubstr;
using train::DivergedError;
using train::OnNan;
using train::StepJudge;
using train::StepResult;

const std::vector<nn::Parameter> kParameters = {{.name = "fc.weight", .shape = {2, 2}, .torch_shape = {2, 2}},
                                                {.name = "fc.bias", .shape = {2}, .torch_shape = {2}}};

/// "on", "back" or "end".
std::string verdict(const char* on_nan, bool scales, const StepResult& result) {
  const StepJudge judge(
      {.on_nan = train::on_nan_named(on_nan), .scales_loss = scales, .learning_rate = 0.5, .parameters = kParameters});
  switch (judge.judge(result)) {
    case StepJudge::Verdict::go_on: return "on";
    case StepJudge::Verdict::go_back: return "back";
    case StepJudge::Verdict::end: return "end";
  }
  return "";
}

TEST(StepJudge, FollowsTheWrittenTable) {
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
    EXPECT_EQ(verdict(row.on_nan, row.scales, good(fine)), row.good);
    EXPECT_EQ(verdict(row.on_nan, row.scales, good(nan)), row.bad_loss);
    EXPECT_EQ(verdict(row.on_nan, row.scales, bad(fine, scale)), row.skipped);
    EXPECT_EQ(verdict(row.on_nan, row.scales, bad(nan, scale)), row.skipped_without_loss);
    EXPECT_EQ(verdict(row.on_nan, row.scales, bad(fine, least)), row.skipped_at_the_least);
  }
  EXPECT_THROW(train::on_nan_named("ignore"), InvalidArgument);
}

TEST(StepJudge, SaysWhereItAroseAndWhatToDo) {
  const StepJudge judge({.on_nan = OnNan::halt, .scales_loss = false, .learning_rate = 0.5, .parameters = kParameters});
  const StepResult known{.loss = 1, .skipped = true, .non_finite = 1};
  EXPECT_EQ(
      message_of<DivergedError>([&] { judge.end(12, known); }),
      "the gradients of step 12 are not finite, the first of them, as backward goes, in fc.bias: lower --lr (it is "
      "0.5)");
  EXPECT_EQ(judge.trouble_of(12, {.loss = 1, .skipped = true}), "the gradients of step 12 are not finite");
  EXPECT_EQ(judge.trouble_of(12, {.loss = std::nan("")}), "the loss of step 12 is no number");
  EXPECT_EQ(judge.parameter_of({}), "");
}

TEST(Rollbacks, EndAfterThreeThatLedNoFurther) {
  train::Rollbacks rollbacks;
  for (int time = 0; time < train::Rollbacks::kMost; ++time) rollbacks.count(20, "trouble");
  rollbacks.saved(19);
  EXPECT_THAT(message_of<DivergedError>([&] { rollbacks.count(20, "the trouble"); }),
              HasSubstr("the trouble, and going"));
  rollbacks.saved(20);
  EXPECT_EQ(rollbacks.made(), 0);
  rollbacks.count(30, "trouble");
  EXPECT_EQ(rollbacks.made(), 1);
}

}  // namespace
}  // namespace gradring::tests
