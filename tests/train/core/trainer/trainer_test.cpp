// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/trainer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <mutex>

#include "data/datasets/dataset.h"
#include "data/datasets/open_dataset.h"
#include "tests/nn/support/program_rig.h"
#include "tests/support/safetensors.h"
#include "tests/support/sanitizer.h"
#include "tests/train/support/rank_rig.h"
#include "tests/train/support/training_run.h"
#include "train/options/usage_error.h"

namespace gradring::tests {
namespace {

TEST(Trainer, TrainsAlikeOutOfTheLoaderAndOutOfTheDevice) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto train_set = head_of(*digits, 50), test_set = head_of(*digits, 10);
  train::TrainConfig config = config_for(2, 8);
  const TrainingRun loaded = train(2, config, train_set, test_set);
  config.resident = train::Resident::on;
  const TrainingRun resident = train(2, config, train_set, test_set);
  EXPECT_EQ(resident.summaries[0].parameters_sha256, loaded.summaries[0].parameters_sha256);
  ASSERT_EQ(resident.rank0.steps.size(), loaded.rank0.steps.size());
  for (std::size_t i = 0; i < loaded.rank0.steps.size(); ++i)
    EXPECT_EQ(resident.rank0.steps[i].loss, loaded.rank0.steps[i].loss) << "step " << i;
}

TEST(Trainer, Fp16LearnsWhatFp32DoesAndSaysSo) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto train_set = head_of(*digits, kThreadSanitizer ? 16 : 1000), test_set = head_of(*digits, 50);
  train::TrainConfig config = config_for(1, 4);
  config.precision = train::Precision::fp16;
  config.loss_scale = 0x1p31;  // the first steps overflow
  const TrainingRun run = train(2, config, train_set, test_set);
  EXPECT_EQ(run.summaries[0].precision, "fp16");
  EXPECT_EQ(run.rank0.steps[0].loss_scale, 0x1p31f);
  EXPECT_TRUE(run.rank0.steps[0].skipped);
  EXPECT_EQ(run.rank0.steps[1].loss_scale, 0x1p30f);
  if (kThreadSanitizer) return;
  EXPECT_FALSE(run.rank0.steps.back().skipped);
  EXPECT_LT(run.rank0.steps.back().loss, run.rank0.steps.front().loss / 2);
}

TEST(Trainer, Fp16OnTheWireNeedsFp16sLossScale) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto train_set = head_of(*digits, 16), test_set = head_of(*digits, 4);
  train::TrainConfig config = config_for(1, 4);
  config.wire_dtype = train::Precision::fp16;
  EXPECT_THROW(train(1, config, train_set, test_set), train::UsageError);
  config.precision = train::Precision::fp16;
  EXPECT_EQ(train(2, config, train_set, test_set).summaries.size(), 2u);
}

TEST(Trainer, Fp16ThatOverflowsAtTheLeastScaleHasDiverged) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto train_set = head_of(*digits, 16), test_set = head_of(*digits, 4);
  train::TrainConfig config = config_for(1, 4);
  config.precision = train::Precision::fp16;
  config.loss_scale = train::kLeastLossScale;
  config.learning_rate = 1e30;  // the first step leaves weights that f16 cannot hold
  EXPECT_THROW(train(1, config, train_set, test_set), train::DivergedError);
}

TEST(Trainer, CountsEveryTestSampleOnceWhateverTheWorld) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto train_set = head_of(*digits, 100), test_set = head_of(*digits, 37);
  const TrainingRun one = train(1, config_for(1, 30), train_set, test_set);
  EXPECT_EQ(one.rank0.evals.front().samples, 37);
  for (int world : {2, 3}) {
    const TrainingRun run = train(world, config_for(1, 30 / world), train_set, test_set);
    ASSERT_EQ(run.rank0.evals.size(), 1u);
    EXPECT_EQ(run.rank0.evals.front().samples, 37);
    EXPECT_NEAR(run.rank0.evals.front().accuracy, one.rank0.evals.front().accuracy, 1.0 / 37 + 1e-9);
  }
}

TEST(Trainer, EveryRankReportsTheSameResultAndStepsAddUp) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto train_set = head_of(*digits, 101), test_set = head_of(*digits, 20);
  train::TrainConfig config = config_for(2, 20);
  config.check_replicas = 1;
  const TrainingRun run = train(2, config, train_set, test_set);
  ASSERT_EQ(run.summaries.size(), 2u);
  EXPECT_EQ(run.summaries[0].parameters_sha256, run.summaries[1].parameters_sha256);
  EXPECT_EQ(run.summaries[0].parameters_sha256.size(), 64u);
  EXPECT_EQ(run.summaries[0].accuracy, run.summaries[1].accuracy);
  EXPECT_EQ(run.summaries[0].loss, run.summaries[1].loss);
  ASSERT_EQ(run.rank0.steps.size(), 6u);  // 51 samples a rank, padded; 20 + 20 + 11, twice
  EXPECT_EQ(run.summaries[0].steps, 6);
  EXPECT_EQ(run.rank0.steps[2].samples, 22);
  EXPECT_EQ(run.rank0.steps[3].epoch, 2);
}

TEST(Trainer, AccumulatesWindowsOfBatchesAndAShortLastOne) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto train_set = head_of(*digits, 101), test_set = head_of(*digits, 20);
  for (const auto resident : {train::Resident::off, train::Resident::on}) {
    train::TrainConfig config = config_for(2, 7);
    config.resident = resident;
    config.accumulate = 3;  // 51 samples a rank: 21, 21 and 9, of which the last batch has 2
    const TrainingRun windows = train(2, config, train_set, test_set);
    ASSERT_EQ(windows.rank0.steps.size(), 6u);
    EXPECT_EQ(windows.rank0.steps[0].samples, 42);
    EXPECT_EQ(windows.rank0.steps[2].samples, 18);
    EXPECT_EQ(windows.rank0.steps[2].steps_in_epoch, 3);
    config.batch_size = 21;
    config.accumulate = 1;
    const TrainingRun same = train(2, config, train_set, test_set);
    for (std::size_t step = 0; step < same.rank0.steps.size(); ++step)
      EXPECT_NEAR(windows.rank0.steps[step].loss, same.rank0.steps[step].loss, 1e-4) << "step " << step;
  }
}

TEST(Trainer, FollowsTheScheduleByAppliedSteps) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto set = head_of(*digits, 16);
  train::TrainConfig config = config_for(3, 4);
  config.learning_rate = 1e-3;
  config.schedule = {.kind = train::ScheduleKind::cosine, .warmup_steps = 2};
  config.clip_norm = 0.5;
  const TrainingRun run = train(1, config, set, set);
  ASSERT_EQ(run.rank0.steps.size(), 12u);
  for (std::int64_t step = 0; step < 12; ++step) {
    const train::StepRecord& record = run.rank0.steps[static_cast<std::size_t>(step)];
    EXPECT_EQ(record.learning_rate, train::learning_rate_at(config.schedule, 1e-3, 12, step));
    EXPECT_GT(record.gradient_norm, 0);
  }
  train::TrainConfig constant = config;
  constant.schedule = {};
  EXPECT_NE(train(1, constant, set, set).rank0.steps.back().loss, run.rank0.steps.back().loss);
  train::TrainConfig free = config;
  free.clip_norm = 0;
  EXPECT_NE(train(1, free, set, set).rank0.steps.back().loss, run.rank0.steps.back().loss);
  config.precision = train::Precision::fp16;
  config.loss_scale = 0x1p126;  // the first step overflows and is skipped
  const TrainingRun late = train(1, config, set, set);
  EXPECT_TRUE(late.rank0.steps[0].skipped);
  EXPECT_EQ(late.rank0.steps[0].learning_rate, 0.5e-3);
  EXPECT_EQ(late.rank0.steps[1].learning_rate, 0.5e-3);
}

TEST(Trainer, SmoothsLabelsInTrainingAlone) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto set = head_of(*digits, 16);
  train::TrainConfig config = config_for(1, 16);
  config.learning_rate = 0;
  const TrainingRun hard = train(1, config, set, set);
  config.label_smoothing = 0.5;
  const TrainingRun smoothed = train(1, config, set, set);
  EXPECT_NE(smoothed.rank0.steps.front().loss, hard.rank0.steps.front().loss);
  EXPECT_EQ(smoothed.rank0.evals.front().loss, hard.rank0.evals.front().loss);
}

/// With a learning rate of 0 the loss of an epoch depends on its images alone.
TEST(Trainer, AugmentsOtherwiseInEachEpochAndInTrainingAlone) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto set = head_of(*digits, 16);
  train::TrainConfig config = config_for(2, 16);
  config.learning_rate = 0;
  const TrainingRun plain = train(1, config, set, set);
  config.augment = data::parse_augmentation("crop=2,flip");
  const TrainingRun augmented = train(1, config, set, set);
  EXPECT_EQ(augmented.rank0.evals.back().loss, plain.rank0.evals.back().loss);
  EXPECT_NEAR(plain.rank0.steps[1].loss, plain.rank0.steps[0].loss, 1e-5);
  EXPECT_GT(std::abs(augmented.rank0.steps[0].loss - plain.rank0.steps[0].loss), 1e-3);
  EXPECT_GT(std::abs(augmented.rank0.steps[1].loss - augmented.rank0.steps[0].loss), 1e-3);
  config.seed = 1ull << 32;  // the same weights and order
  EXPECT_GT(std::abs(train(1, config, set, set).rank0.steps[0].loss - augmented.rank0.steps[0].loss), 1e-3);
}

TEST(Trainer, StopsAfterSteps) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto set = head_of(*digits, 64);
  train::TrainConfig config = config_for(0, 16);
  config.steps = 5;
  const TrainingRun run = train(1, config, set, set);
  EXPECT_EQ(run.rank0.steps.size(), 5u);
  EXPECT_EQ(run.rank0.steps.back().epoch, 2);
  EXPECT_EQ(run.rank0.evals.size(), 2u);
}

TEST(Trainer, SaysWhenTheLossIsNoNumber) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto set = head_of(*digits, 64);
  train::TrainConfig config = config_for(20, 16);
  config.optimizer.kind = train::OptimizerKind::sgd;
  config.learning_rate = 1e20;
  EXPECT_THROW(train(2, config, set, set), train::DivergedError);
  config.steps = 20;
  config.clip_norm = 1e30;  // gradients that are no numbers are found before they are clipped
  EXPECT_THROW(train(2, config, set, set), train::DivergedError);
}

TEST(Trainer, LearnsDigitsInTwoEpochs) {
  if (kThreadSanitizer) GTEST_SKIP() << "takes an hour under ThreadSanitizer";
  const auto train_set = data::open_dataset("digits", data::Split::train, "");
  const auto test_set = data::open_dataset("digits", data::Split::test, "");
  const TrainingRun run = train(2, config_for(2, 32), *train_set, *test_set);
  EXPECT_GE(run.summaries[0].accuracy, 0.97);
}

TEST(Trainer, FollowsPyTorchOnMnist) {
  if (kThreadSanitizer) GTEST_SKIP() << "takes hours under ThreadSanitizer";
  const char* folder = std::getenv("GRADRING_DATA_DIR");
  if (!folder) GTEST_SKIP() << "set GRADRING_DATA_DIR to a folder with MNIST";
  const auto train_set = data::open_dataset("mnist", data::Split::train, folder);
  const auto test_set = data::open_dataset("mnist", data::Split::test, folder);
  const auto golden = tests::read_golden("mnist_two_epochs_seed0");
  const auto losses = golden.at("losses").as<double>();
  const auto accuracy = golden.at("test_accuracy").as<double>();
  const TrainingRun run = train(1, config_for(2, 64), *train_set, *test_set);
  ASSERT_EQ(run.rank0.steps.size(), losses.size());
  for (std::size_t step = 0; step < 20; ++step) EXPECT_NEAR(run.rank0.steps[step].loss, losses[step], 1e-3) << step;
  for (std::size_t epoch = 0; epoch < 2; ++epoch) EXPECT_NEAR(run.rank0.evals[epoch].accuracy, accuracy[epoch], 0.003);
}

}  // namespace
}  // namespace gradring::tests
