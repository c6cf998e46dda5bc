// SPDX-License-Identifier: Apache-2.0
// A gradient of one rank that is not finite: all ranks skip, halt or go back in the same step, and say where it arose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/datasets/open_dataset.h"
#include "tests/data/support/message_of.h"
#include "tests/train/support/poisoned_backend.h"
#include "tests/train/support/rank_rig.h"
#include "tests/train/support/training_run.h"

namespace gradring::tests {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OnNanTest : public ::testing::Test {
 protected:
  static constexpr int kWorld = 2;

  std::unique_ptr<data::Dataset> digits_ = data::open_dataset("digits", data::Split::train, "");
  data::InMemoryDataset train_set_ = head_of(*digits_, 40), test_set_ = head_of(*digits_, 3);
  train::TrainConfig config_ = config_for(2, 4);  // 2 epochs of 5 steps, of 2 ranks
  TrainingRun run_;

  /// With a NaN on rank 1 in its backward passes `passes`.
  void train_with_nan(std::set<int> passes) {
    train(run_, kWorld, config_, train_set_, test_set_, {}, [&](std::unique_ptr<nn::Backend> inner, int rank) {
      return rank == 1 ? poisoned_backend(std::move(inner), passes) : std::move(inner);
    });
  }
};

TEST_F(OnNanTest, SkippedStepsNameTheFirstLayerAtEveryStage) {
  config_.precision = train::Precision::fp16;
  config_.buckets = {.first_bytes = 1, .rest_bytes = 40'000};
  for (config_.zero = 0; config_.zero <= 3; ++config_.zero) {
    SCOPED_TRACE("stage " + std::to_string(config_.zero));
    run_ = {};
    train_with_nan({2, 3});
    ASSERT_EQ(run_.rank0.steps.size(), 10u);
    for (std::size_t step = 0; step < 10; ++step) {
      const train::StepRecord& record = run_.rank0.steps[step];
      const bool bad = step == 2 || step == 3;
      EXPECT_EQ(record.skipped, bad) << "step " << step;
      EXPECT_EQ(record.non_finite, bad ? kPoisoned : "") << "step " << step;
      EXPECT_EQ(record.underflow.has_value(), !bad) << "step " << step;
      if (bad) continue;
      EXPECT_GT(*record.underflow, 0) << "some units give nothing";
      EXPECT_LT(*record.underflow, 0.9);
    }
  }
}

TEST_F(OnNanTest, ReproducibleSumsNameTheFirstLayerToo) {
  config_.reproducible = true;
  config_.precision = train::Precision::fp16;
  config_.buckets = {.first_bytes = 1, .rest_bytes = 40'000};
  for (config_.zero = 0; config_.zero <= 3; ++config_.zero) {
    SCOPED_TRACE("stage " + std::to_string(config_.zero));
    run_ = {};
    train_with_nan({2});
    ASSERT_EQ(run_.rank0.steps.size(), 10u);
    for (std::size_t step = 0; step < 10; ++step)
      EXPECT_EQ(run_.rank0.steps[step].non_finite, step == 2 ? kPoisoned : "") << "step " << step;
  }
}

TEST_F(OnNanTest, LargerScalesLoseFewerGradients) {
  config_.precision = train::Precision::fp16;
  config_.epochs = 1;
  double before = 1;
  for (const double scale : {0x1p-4, 1.0, 0x1p10}) {
    config_.loss_scale = scale;
    run_ = {};
    train_with_nan({});
    const double now = run_.rank0.steps.front().underflow.value();
    EXPECT_LT(now, before) << scale;
    before = now;
  }
}

TEST_F(OnNanTest, SkipInFp32LeavesTheWeightsAsTheyWere) {
  config_.on_nan = train::OnNan::skip;
  train_with_nan({4});
  ASSERT_EQ(run_.rank0.steps.size(), 10u);
  EXPECT_EQ(run_.rank0.steps[4].non_finite, kPoisoned);
  EXPECT_FALSE(run_.rank0.steps[4].underflow) << "nothing is scaled";
  EXPECT_FALSE(run_.rank0.steps[5].skipped);
  EXPECT_EQ(run_.summaries[0].parameters_sha256, run_.summaries[1].parameters_sha256);
}

TEST_F(OnNanTest, HaltNamesTheLayerInEveryPrecision) {
  config_.on_nan = train::OnNan::halt;
  for (const auto precision : {train::Precision::fp32, train::Precision::fp16}) {
    config_.precision = precision;
    run_ = {};
    EXPECT_THAT(message_of<train::DivergedError>([&] { train_with_nan({3}); }),
                AllOf(HasSubstr("the gradients of step 4 are not finite"), HasSubstr(kPoisoned), HasSubstr("--lr")));
    ASSERT_EQ(run_.rank0.steps.size(), 4u);
    EXPECT_TRUE(run_.rank0.steps[3].skipped);
    EXPECT_EQ(run_.rank0.steps[3].non_finite, kPoisoned);
  }
}

TEST_F(OnNanTest, RollbackLeavesNoTrace) {
  config_.on_nan = train::OnNan::roll_back;
  config_.save_every_steps = 2;
  for (config_.zero = 0; config_.zero <= 3; config_.zero += 3) {
    SCOPED_TRACE("stage " + std::to_string(config_.zero));
    run_ = {};
    train_with_nan({});
    const TrainingRun undisturbed = std::move(run_);
    run_ = {};
    train_with_nan({3, 11});  // in step 4; then, 2 steps made again, in the last one
    EXPECT_THAT(run_.rank0.back_to, ElementsAre(2, 8));
    ASSERT_EQ(run_.rank0.remarks.size(), 2u);
    EXPECT_THAT(run_.rank0.remarks[0],
                AllOf(HasSubstr("step 4"), HasSubstr(kPoisoned), HasSubstr("went back to step 2")));
    ASSERT_EQ(run_.rank0.steps.size(), undisturbed.rank0.steps.size());
    for (std::size_t i = 0; i < run_.rank0.steps.size(); ++i)
      EXPECT_EQ(run_.rank0.steps[i].loss, undisturbed.rank0.steps[i].loss) << "step " << i;
    EXPECT_EQ(run_.rank0.evals.size(), 2u);
    EXPECT_EQ(run_.summaries[0].parameters_sha256, undisturbed.summaries[0].parameters_sha256);
    EXPECT_EQ(run_.summaries[0].train_loss, undisturbed.summaries[0].train_loss);
  }
}

TEST_F(OnNanTest, RollbackWithoutACheckpointEndsWithAWord) {
  config_.on_nan = train::OnNan::roll_back;
  EXPECT_THAT(message_of<train::DivergedError>([&] { train_with_nan({3}); }),
              AllOf(HasSubstr("step 4"), HasSubstr(kPoisoned), HasSubstr("no checkpoint to roll back to")));
}

TEST_F(OnNanTest, RollbackThatDoesNotHelpEnds) {
  config_.on_nan = train::OnNan::roll_back;
  config_.save_every_steps = 2;
  EXPECT_THAT(message_of<train::DivergedError>([&] {
                train_with_nan({3, 5, 7, 9});
              }),
              AllOf(HasSubstr("step 4"), HasSubstr("3 rollbacks to the newest checkpoint did not help")));
  EXPECT_THAT(run_.rank0.back_to, ElementsAre(2, 2, 2));
}

TEST_F(OnNanTest, RollbackMayComeAgainOnceTheTroubleIsPassed) {
  config_.on_nan = train::OnNan::roll_back;
  config_.save_every_steps = 2;
  train_with_nan({3, 7, 10, 14});  // each in a step that no checkpoint is behind yet
  EXPECT_THAT(run_.rank0.back_to, ElementsAre(2, 5, 6, 8));
  EXPECT_EQ(run_.rank0.steps.size(), 10u);
  EXPECT_EQ(run_.summaries[0].parameters_sha256, run_.summaries[1].parameters_sha256);
}

TEST_F(OnNanTest, RollbackLetsTheLossScaleFallFirst) {
  config_.on_nan = train::OnNan::roll_back;
  config_.precision = train::Precision::fp16;
  config_.save_every_steps = 2;
  train_with_nan({3});
  EXPECT_TRUE(run_.rank0.back_to.empty());
  EXPECT_TRUE(run_.rank0.steps[3].skipped);
}

TEST(OnNan, IsFoundInStepsThatAreRecorded) {
  const auto dataset = golden_images();
  for (const bool recorded : {false, true})
    run_ranks(2, [&](comm::ProcessGroup& group) {
      RankRig::Options options;
      options.max_batch = 2;
      options.precision = kernels::DType::f16;
      options.loss_scaling = {.dynamic = true, .initial = 1024, .policy = {}};
      options.recorded = recorded;
      options.decorate = [&](std::unique_ptr<nn::Backend> inner) {
        return group.rank() == 1 ? poisoned_backend(std::move(inner), {3}) : std::move(inner);
      };
      RankRig rig(group, *dataset, options);
      for (int step = 0; step < 5; ++step) {
        const train::StepResult result = rig.step({2 * group.rank(), 2 * group.rank() + 1}, 4);
        EXPECT_EQ(result.skipped, step == 3);
        EXPECT_EQ(result.non_finite >= 0 ? rig.parameters()[static_cast<std::size_t>(result.non_finite)].name : "",
                  step == 3 ? kPoisoned : "");
      }
    });
}

}  // namespace
}  // namespace gradring::tests
