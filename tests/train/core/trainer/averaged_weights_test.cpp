// SPDX-License-Identifier: Apache-2.0
// --ema: averaged weights are kept, saved and evaluated beside those that are trained.
#include <gtest/gtest.h>

#include "data/datasets/open_dataset.h"
#include "tests/train/support/training_run.h"

namespace gradring::tests {
namespace {

class AveragedWeights : public ::testing::Test {
 protected:
  std::unique_ptr<data::Dataset> digits_ = data::open_dataset("digits", data::Split::train, "");
  data::InMemoryDataset train_set_ = head_of(*digits_, 48), test_set_ = head_of(*digits_, 31);

  train::TrainConfig config(train::Precision precision, std::int64_t zero) const {
    train::TrainConfig config = config_for(2, 8);
    config.optimizer.ema = 0.6;
    config.precision = precision;
    config.zero = zero;
    return config;
  }
};

/// The checkpoint with its averaged weights in the place of the weights.
train::Checkpoint averaged(train::Checkpoint checkpoint) {
  for (train::TensorRecord& weight : checkpoint.model)
    for (const train::TensorRecord& average : checkpoint.state)
      if (average.name == "ema." + weight.name) weight.bytes = average.bytes;
  return checkpoint;
}

TEST_F(AveragedWeights, AreEvaluatedBesideTheOthersAtEveryStage) {
  for (const auto precision : {train::Precision::fp32, train::Precision::fp16})
    for (std::int64_t zero = 0; zero <= 3; ++zero) {
      SCOPED_TRACE(std::string(word_of(precision)) + ", stage " + std::to_string(zero));
      const train::TrainConfig with = config(precision, zero);
      const TrainingRun run = train(2, with, train_set_, test_set_);
      const train::EvalRecord& last = run.rank0.evals.back();
      ASSERT_TRUE(last.ema_accuracy && last.ema_loss);
      EXPECT_EQ(run.summaries.front().ema_accuracy, last.ema_accuracy);
      EXPECT_NE(*last.ema_loss, last.loss);
      const train::Checkpoint checkpoint = averaged(run.checkpoints.all.back());
      const TrainingRun again =
          train(2, with, train_set_, test_set_, [&](train::Trainer& trainer, int rank) {  // it is over: it evaluates
            trainer.resume({.checkpoint = rank == 0 ? checkpoint : train::Checkpoint(), .from = "averaged"});
          });
      EXPECT_EQ(again.summaries.front().loss, *last.ema_loss);
      EXPECT_EQ(again.summaries.front().accuracy, *last.ema_accuracy);
    }
}

TEST_F(AveragedWeights, ChangeNothingOfTheTraining) {
  train::TrainConfig with = config(train::Precision::fp32, 0), without = with;
  without.optimizer.ema = 0;
  const TrainingRun plain = train(1, without, train_set_, test_set_);
  EXPECT_EQ(train(1, with, train_set_, test_set_).summaries.front().parameters_sha256,
            plain.summaries.front().parameters_sha256);
  EXPECT_FALSE(plain.rank0.evals.back().ema_accuracy);
  EXPECT_FALSE(plain.summaries.front().ema_accuracy);
}

TEST_F(AveragedWeights, AreTheFirstWeightsUntilAStepIsApplied) {
  train::TrainConfig config = this->config(train::Precision::fp16, 0);
  config.epochs = 1;
  config.loss_scale = 0x1p120;  // no step is applied
  const TrainingRun run = train(1, config, train_set_, test_set_);
  EXPECT_TRUE(run.rank0.steps.back().skipped);
  EXPECT_EQ(*run.rank0.evals.back().ema_loss, run.rank0.evals.back().loss);
}

}  // namespace
}  // namespace gradring::tests
