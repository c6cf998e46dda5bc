// SPDX-License-Identifier: Apache-2.0
#include "train/core/config/group_option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/data/support/message_of.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& text) {
  return tests::message_of<UsageError>([&] { parse_groups("group", text); });
}

TEST(GroupOption, ReadsEveryKeyAndShowsIt) {
  const std::string text =
      "bn.*:optimizer=adamw,lr=0.1,betas=0.8,0.99,eps=1e-06,weight_decay=0,epochs=3;"
      "fc?.weight:momentum=0.9,dampening=0.1,nesterov=false,frozen=true";
  const auto groups = parse_groups("group", text);
  const std::vector<GroupOverride> expected = {
      {.pattern = "bn.*",
       .kind = OptimizerKind::adamw,
       .learning_rate = 0.1,
       .betas = Betas{0.8, 0.99},
       .epsilon = 1e-6,
       .weight_decay = 0,
       .epochs = 3},
      {.pattern = "fc?.weight", .momentum = 0.9, .dampening = 0.1, .nesterov = false, .frozen = true}};
  EXPECT_TRUE(groups == expected) << show_groups(groups);
  EXPECT_EQ(show_groups(groups), text);
  EXPECT_TRUE(parse_groups("group", "").empty());
}

TEST(GroupOption, TakesFlagsWithoutValuesAndDashes) {
  EXPECT_EQ(show_groups(parse_groups("group", "*:frozen")), "*:frozen=true");
  EXPECT_EQ(show_groups(parse_groups("group", "*:weight-decay=1,nesterov")), "*:nesterov=true,weight_decay=1");
}

TEST(GroupOption, SaysWhatIsWrong) {
  EXPECT_THAT(refusal("bn.*"), HasSubstr("must be PATTERN:key=value,..."));
  EXPECT_THAT(refusal(":lr=1"), HasSubstr("must be PATTERN:key=value,..."));
  EXPECT_THAT(refusal("a:"), HasSubstr("must be PATTERN:key=value,..."));
  EXPECT_THAT(refusal("a:lr"), HasSubstr("has 'lr' without a value"));
  EXPECT_THAT(refusal("a:weigth_decay=0"), HasSubstr("Did you mean 'weight_decay'?"));
  EXPECT_THAT(refusal("a:lr=fast"), HasSubstr("group 'a' lr is 'fast'"));
  EXPECT_THAT(refusal("a:optimizer=sdg"), HasSubstr("must be one of adam, adamw, sgd"));
  EXPECT_THAT(refusal("a:betas=0.9"), HasSubstr("must be two numbers"));
  EXPECT_THAT(refusal("a:betas=0.9,0.99,0.999"), HasSubstr("betas is '0.9,0.99,0.999', but must be two numbers"));
  EXPECT_THAT(refusal("a:lr=-1"), HasSubstr("group 'a' lr is '-1'"));
  EXPECT_THAT(refusal("a:lr=1,frozen,lr=1"), HasSubstr("has lr twice"));
  EXPECT_THAT(refusal("a:weight_decay=0,weight-decay=1"), HasSubstr("has weight_decay twice"));
  EXPECT_THAT(refusal("a:betas=0.9,0.99,betas=0.9,0.99"), HasSubstr("has betas twice"));
}

}  // namespace
}  // namespace gradring::train
