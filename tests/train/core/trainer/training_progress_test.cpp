// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/training_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/data/support/message_of.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;
using kernels::step_state::StepState;
using tests::message_of;

constexpr TrainingProgress kProgress{.steps = 7,
                                     .epoch = 1,
                                     .position = 320,
                                     .samples = 448,
                                     .epoch_loss_sum = 0.1 + 0.2,
                                     .epoch_samples = 320,
                                     .seconds = 1.0 / 3};

TEST(TrainingProgress, ComesBackBitForBitOutOfText) {
  EXPECT_EQ(progress_in(Json::parse(to_json(kProgress).dump()), "meta.json"), kProgress);
}

TEST(TrainingProgress, KnowsTheBestEvaluationAndComesBackWithIt) {
  TrainingProgress progress = kProgress;
  EXPECT_FALSE(to_json(progress).contains("best_accuracy")) << "nothing was evaluated";
  for (const auto& [accuracy, since] : {std::pair{0.5, 0}, {0.5, 1}, {0.25, 2}, {0.75, 0}, {0.5, 1}}) {
    progress.epoch_evaluated(accuracy);
    EXPECT_EQ(progress.epochs_since_best, since) << accuracy;
  }
  EXPECT_EQ(progress.best_accuracy, 0.75);
  EXPECT_EQ(progress_in(Json::parse(to_json(progress).dump()), "meta.json"), progress);
  Json wrong = to_json(progress);
  wrong["best_accuracy"] = 1.5;
  EXPECT_THROW(progress_in(wrong, "meta.json"), CheckpointError);
}

TEST(TrainingProgress, TheStepStateComesBackWithWhatTheNextStepReads) {
  const StepState state{
      .applied_steps = 5, .non_finite = 1, .loss_scale = 0x1p-16f, .growth_tracker = 3, .skipped_steps = 2};
  const StepState back = step_state_in(Json::parse(to_json(state).dump()), "meta.json");
  EXPECT_EQ(back.applied_steps, 5);
  EXPECT_EQ(back.skipped_steps, 2);
  EXPECT_EQ(back.loss_scale, 0x1p-16f);
  EXPECT_EQ(back.growth_tracker, 3);
  EXPECT_EQ(back.non_finite, 0) << "that is the step's which was";
}

TEST(TrainingProgress, WhatIsNoSoundNumberIsRejectedByName) {
  for (const Json& wrong : {Json("7"), Json(-1), Json(1.5), Json(nullptr), Json(1e300), Json(INT64_MAX)}) {
    Json json = to_json(kProgress);
    json["position"] = wrong;
    EXPECT_THAT(message_of<CheckpointError>([&] { progress_in(json, "step-7/meta.json"); }),
                AllOf(HasSubstr("step-7/meta.json has 'position' = '"), HasSubstr("expected a number from 0 to "),
                      HasSubstr("use another")))
        << wrong;
  }
  Json missing = to_json(kProgress);
  missing.erase("seconds");
  EXPECT_THROW(progress_in(missing, "meta.json"), CheckpointError);
  EXPECT_THROW(progress_in(Json(), "meta.json"), CheckpointError);
  EXPECT_THROW(step_state_in(Json::array({1, 2}), "meta.json"), CheckpointError);
}

TEST(TrainingProgress, CountsThatTheNextStepWouldOverflowAreRejected) {
  for (const char* count : {"steps", "epoch", "position", "samples", "epoch_samples"}) {
    Json json = to_json(kProgress);
    json[count] = INT64_MAX;
    EXPECT_THAT(message_of<CheckpointError>([&] { progress_in(json, "meta.json"); }), HasSubstr(count));
  }
  for (const char* count : {"applied_steps", "skipped_steps", "growth_tracker"}) {
    Json json = to_json(StepState());
    json[count] = INT32_MAX;
    EXPECT_THAT(message_of<CheckpointError>([&] { step_state_in(json, "meta.json"); }), HasSubstr(count));
  }
}

TEST(TrainingProgress, ALossScaleThatCannotBeDividedByIsRejected) {
  for (const double scale : {0.0, -1.0, 1e-45, 1e300}) {
    Json json = to_json(StepState());
    json["loss_scale"] = scale;
    EXPECT_THAT(message_of<CheckpointError>([&] { step_state_in(json, "meta.json"); }), HasSubstr("'loss_scale' = '"))
        << scale;
  }
}

}  // namespace
}  // namespace gradring::train
