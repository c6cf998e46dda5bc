// SPDX-License-Identifier: Apache-2.0
#include "train/faults/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/support/message_of.h"
#include "train/config/resolve.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string refusal(const std::string& text) {
  return tests::message_of<UsageError>([&] { parse_faults(text); });
}

TEST(Fault, OfEveryKindIsReadAndShown) {
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

TEST(Fault, ThatIsNoneIsRefusedWithAWord) {
  EXPECT_THAT(refusal("kil:rank=1,step=2"), HasSubstr("Did you mean 'kill'?"));
  EXPECT_THAT(refusal("kill"), HasSubstr("--inject kill: needs kill:rank=R,step=N"));
  EXPECT_THAT(refusal("kill:rank=1"), HasSubstr("needs step=N"));
  EXPECT_THAT(refusal("kill:step=1"), HasSubstr("needs rank=R"));
  EXPECT_THAT(refusal("kill:rank=1,step=0"), HasSubstr("--inject step is '0', but must be a whole number from 1"));
  EXPECT_THAT(refusal("kill:rank=1,step=5..4"), HasSubstr("--inject step is '4', but must be a whole number from 5"));
  EXPECT_THAT(refusal("kill:rank=1,step=5.."), HasSubstr("--inject step is ''"));
  EXPECT_THAT(refusal("kill:rank=-1,step=5"), HasSubstr("--inject rank is '-1'"));
  EXPECT_THAT(refusal("kill:rank=1,step=2,stp=3"), HasSubstr("there is no 'stp' for it. Did you mean 'step'?"));
  EXPECT_THAT(refusal("kill:rank=1,step=2,ms=3"), HasSubstr("there is no 'ms' for it"));
  EXPECT_THAT(refusal("kill:rank=1,step=2,rank=1"), HasSubstr("'rank' stands there twice"));
  EXPECT_THAT(refusal("kill:rank=1,step"), HasSubstr("'step' must be KEY=VALUE"));
  EXPECT_THAT(refusal("delay:rank=1,step=2"), HasSubstr("needs ms=M"));
  EXPECT_THAT(refusal("exit:rank=1,step=2,code=256"), HasSubstr("--inject code is '256'"));
  EXPECT_THAT(refusal("kill:rank=1,step=2;"), HasSubstr("--inject is ''"));
}

TEST(Fault, IsAnOptionOfATrainingAndOfItsConfigFile) {
  const std::string text = "kill:rank=1,step=2;nan:rank=any,step=3..4";
  const TrainConfig config = resolve({{"inject", text}}, {}, std::nullopt).config;
  EXPECT_EQ(show_faults(config.faults), text);
  EXPECT_THAT(to_toml(config), HasSubstr("inject = \"" + text + "\"\n"));
  EXPECT_THAT(to_toml(TrainConfig()), HasSubstr("inject = \"\"\n"));
}

}  // namespace
}  // namespace gradring::train
