// SPDX-License-Identifier: Apache-2.0
#include "train/setup/step_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradring::train {
namespace {

using ::testing::IsEmpty;

TEST(StepChange, IsToldWhereTheStepsOfARunGetAnotherSize) {
  Checkpoint checkpoint{.step = 3};
  checkpoint.about = {{"samples_of_step", 32}};
  TrainConfig config{.batch_size = 16};
  EXPECT_THAT(step_change(checkpoint, config, 2), IsEmpty());
  EXPECT_EQ(step_change(checkpoint, config, 1),
            "a step has 16 samples now, of 1 rank, and had 32 when the checkpoint was saved: --global-batch 32 keeps "
            "that, whatever the number of ranks");
  EXPECT_THAT(step_change(checkpoint, config, 3), testing::HasSubstr("48 samples now, of 3 ranks,"));
  config.global_batch = 32;
  EXPECT_THAT(step_change(checkpoint, config, 1), IsEmpty());
}

TEST(StepChange, IsNotGuessed) {
  EXPECT_THAT(step_change({.step = 3}, {}, 1), IsEmpty());
  Checkpoint odd{.step = 3};
  odd.about = {{"samples_of_step", "many"}};
  EXPECT_THAT(step_change(odd, {}, 1), IsEmpty());
}

}  // namespace
}  // namespace gradring::train
