// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/training_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "tests/data/support/message_of.h"
#include "train/core/trainer/training_state.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;
using tests::message_of;

/// After 20 steps of 16 samples, the last of each epoch of 200 with 8: in the second epoch, with one step skipped.
Checkpoint valid() {
  return {.step = 20,
          .model = {},
          .state = {},
          .about = Json{{"progress", to_json(TrainingProgress{.steps = 20,
                                                              .epoch = 1,
                                                              .position = 112,
                                                              .samples = 312,
                                                              .epoch_loss_sum = 90,
                                                              .epoch_samples = 112,
                                                              .seconds = 1})},
                        {"step_state", to_json(kernels::step_state::StepState{
                                           .applied_steps = 19, .growth_tracker = 4, .skipped_steps = 1})},
                        {"samples_of_step", 16},
                        {"order", {{"dataset", "mnist"}, {"samples", 200}, {"seed", 0}}},
                        {"total_steps", 26},
                        {"precision", "fp32"}},
          .score = {}};
}

void read_with(const std::function<void(Json&)>& change) {
  Checkpoint checkpoint = valid();
  change(*checkpoint.about);
  checkpoint.about = JsonValue::parse(checkpoint.about.text());  // whose numbers are unsigned where they can be
  from_checkpoint(std::move(checkpoint), "run/checkpoints/step-20");
}

std::string rejection(const char* pointer, const Json& value) {
  return message_of<CheckpointError>(
      [&] { read_with([&](Json& about) { about[Json::json_pointer(pointer)] = value; }); });
}

TEST(ConsistentCounts, AcceptsWhatATrainingSaves) {
  EXPECT_NO_THROW(read_with([](Json&) {}));
  EXPECT_NO_THROW(read_with([](Json& about) {  // the end of an epoch
    about["progress"]["steps"] = 20;
    about["progress"]["epoch"] = 2;
    about["progress"]["position"] = 0;
    about["progress"]["samples"] = 400;
    about["progress"]["epoch_samples"] = 200;
  }));
  EXPECT_NO_THROW(read_with([](Json& about) {  // an optimizer that had taken 5 steps
    about["progress"]["imported_steps"] = 5;
    about["step_state"]["applied_steps"] = 24;
  }));
}

TEST(ConsistentCounts, AcceptsWhatEarlierVersionsLeftOut) {
  EXPECT_NO_THROW(read_with([](Json& about) {
    for (const char* name : {"samples_of_step", "order", "total_steps", "precision"}) about.erase(name);
    about["progress"].erase("imported_steps");
    about["step_state"]["applied_steps"] = 24;  // of an optimizer that was imported, perhaps
  }));
}

TEST(ConsistentCounts, NameTheFileTheCounterAndWhatWasExpected) {
  EXPECT_EQ(rejection("/progress/epoch", 1'000'000'000),
            "run/checkpoints/step-20/meta.json has 'progress.epoch' = 1000000000, expected at most 19 after 20 steps; "
            "use another checkpoint");
  const struct {
    const char* pointer;
    Json value;
    const char* expected;
  } cases[] = {
      {"/progress/steps", 21, "has 'progress.steps' = 21, expected its 'step', 20"},
      {"/progress/steps", 0, "has 'progress.steps' = 0"},
      {"/progress/steps", -20, "has 'steps' = '-20', expected a number from 0"},
      {"/progress/epoch", 20, "has 'progress.epoch' = 20, expected at most 19"},
      {"/progress/epoch", -1, "has 'epoch' = '-1'"},
      {"/progress/position", 216, "has 'progress.position' = 216, expected a position within the 200 samples"},
      {"/progress/position", 313, "has 'progress.position' = 313, expected at most 'progress.samples', 312"},
      {"/progress/position", -16, "has 'position' = '-16'"},
      {"/progress/samples", 19, "has 'progress.samples' = 19, expected one or more in each of 20 steps"},
      {"/progress/epoch_samples", 113, "has 'progress.epoch_samples' = 113, expected at most the 112 of the epoch"},
      {"/progress/seconds", 1e300, "has 'seconds' = '1e+300'"},
      {"/progress/imported_steps", 3, "has 'step_state.applied_steps' = 19, expected 22"},
      {"/progress/imported_steps", -1, "has 'imported_steps' = '-1'"},
      {"/step_state/applied_steps", 20,
       "has 'step_state.applied_steps' = 20, expected 19: 20 steps, 1 of them skipped"},
      {"/step_state/applied_steps", 0, "has 'step_state.applied_steps' = 0, expected 19"},
      {"/step_state/skipped_steps", 21, "has 'step_state.skipped_steps' = 21, expected at most the 20 steps"},
      {"/step_state/growth_tracker", 20, "has 'step_state.growth_tracker' = 20, expected at most the 19 applied steps"},
      {"/samples_of_step", 0, "has 'samples_of_step' = '0'"},
      {"/samples_of_step", "16", "has 'samples_of_step' = "},
      {"/total_steps", -3, "has 'total_steps' = '-3'"},
      {"/precision", 16, "has 'precision' = '16', expected text"},
      {"/cpu_level", 3, "has 'cpu_level' = '3', expected text"},
      {"/settings", Json::array(), "has 'settings' = '[]', expected text"},
      {"/order", 7, "has 'order' = '7', expected an object"},
      {"/order/samples", -200, "has 'samples' = '-200'"},
      {"/order/seed", "a", "has 'seed' = "},
      {"/order/dataset", 1, "has 'dataset' = '1', expected text"},
  };
  for (const auto& [pointer, value, expected] : cases)
    EXPECT_THAT(rejection(pointer, value), AllOf(StartsWith("run/checkpoints/step-20/meta.json has "),
                                                 HasSubstr(expected), HasSubstr("use another checkpoint")))
        << pointer;
}

TEST(ConsistentCounts, RejectsAScoreThatIsNoAccuracy) {
  for (const double score : {-0.1, 1.5, 1e300}) {
    Checkpoint checkpoint = valid();
    checkpoint.about = JsonValue::parse(checkpoint.about.text());
    checkpoint.score = score;
    EXPECT_THAT(message_of<CheckpointError>([&] { from_checkpoint(checkpoint, "step-20"); }),
                HasSubstr("step-20/meta.json has 'score' = "));
  }
}

TEST(ConsistentCounts, RejectsStepsThatAreMissingWithoutAnImportedOptimizer) {
  EXPECT_THAT(message_of<CheckpointError>([] {
                read_with([](Json& about) {
                  about["progress"].erase("imported_steps");
                  about["step_state"]["applied_steps"] = 18;
                });
              }),
              HasSubstr("has 'step_state.applied_steps' = 18, expected 19"));
}

}  // namespace
}  // namespace gradring::train
