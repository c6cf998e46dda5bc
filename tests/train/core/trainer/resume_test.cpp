// SPDX-License-Identifier: Apache-2.0
// A training that is stopped and resumed goes on as if nothing had been.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/datasets/open_dataset.h"
#include "tests/data/support/message_of.h"
#include "tests/support/sanitizer.h"
#include "tests/train/support/training_run.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/error.h"

namespace gradring::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using train::Checkpoint;

/// What must be equal of two checkpoints of one step: all but how long it took, and how well it did.
void expect_same(const Checkpoint& actual, const Checkpoint& expected) {
  EXPECT_EQ(actual.step, expected.step);
  EXPECT_TRUE(actual.model == expected.model) << "weights differ after step " << expected.step;
  EXPECT_TRUE(actual.state == expected.state) << "the optimizer's state differs after step " << expected.step;
  auto mine = actual.about, theirs = expected.about;
  for (auto* about : {&mine, &theirs}) {
    (**about)["progress"].erase("seconds");
    for (const char* name : {"settings", "settings_sha256", "total_steps"}) (*about)->erase(name);  // --steps differs
  }
  EXPECT_TRUE(mine == theirs) << mine.text() << " is not " << theirs.text() << "after step " << expected.step;
}

void expect_same(const train::StepRecord& actual, const train::StepRecord& expected) {
  EXPECT_EQ(actual.step, expected.step);
  EXPECT_EQ(actual.epoch, expected.epoch);
  EXPECT_EQ(actual.step_of_epoch, expected.step_of_epoch);
  EXPECT_EQ(actual.loss, expected.loss) << "step " << expected.step;
  EXPECT_EQ(actual.learning_rate, expected.learning_rate);
  EXPECT_EQ(actual.samples, expected.samples);
  EXPECT_EQ(actual.loss_scale, expected.loss_scale) << "step " << expected.step;
  EXPECT_EQ(actual.skipped, expected.skipped);
}

/// Trains on from a checkpoint.
TrainingRun resumed(int world, const train::TrainConfig& config, const data::Dataset& train_set,
                    const data::Dataset& test_set, const Checkpoint& from) {
  return train(world, config, train_set, test_set, [&](train::Trainer& trainer, int rank) {
    trainer.resume({.checkpoint = rank == 0 ? from : Checkpoint(), .from = "step-" + std::to_string(from.step)});
  });
}

struct ResumeCase {
  const char* name;
  int world = 1;
  train::OptimizerKind optimizer = train::OptimizerKind::adam;
  train::Precision precision = train::Precision::fp32;
  std::int64_t accumulate = 1;
  std::int64_t batch_size = 4;
  double ema = 0;
  const char* augment = "none";
};

class Resume : public ::testing::TestWithParam<ResumeCase> {
 protected:
  static train::TrainConfig config() {
    train::TrainConfig config = config_for(0, GetParam().batch_size);
    config.optimizer = {.kind = GetParam().optimizer};
    if (!is_adam(config.optimizer.kind)) {
      config.optimizer.momentum = 0.9;
      config.learning_rate = 1e-2;
    }
    config.optimizer.ema = GetParam().ema;
    config.augment = data::parse_augmentation(GetParam().augment);
    config.precision = GetParam().precision;
    config.loss_scale = 0x1p28;      // the first steps overflow, and
    config.loss_scale_interval = 9;  // the scale rises again
    config.accumulate = GetParam().accumulate;
    config.save_every_steps = 1;
    return config;
  }
};

// Each restart makes one step out of the checkpoint that the restart before it left: if all are equal, so is every run
// that is stopped anywhere, as often as it may be.
TEST_P(Resume, AtEveryStepLeavesNoTrace) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto train_set = head_of(*digits, 57), test_set = head_of(*digits, 3);  // no whole number of steps
  train::TrainConfig whole = config();
  whole.steps = !kSanitizer.empty() ? 8 : 80;
  const int world = GetParam().world;
  const TrainingRun undisturbed = train(world, whole, train_set, test_set);
  ASSERT_EQ(undisturbed.rank0.steps.size(), static_cast<std::size_t>(whole.steps));
  if (whole.precision == train::Precision::fp16) {
    EXPECT_TRUE(undisturbed.rank0.steps.front().skipped);
  }

  train::TrainConfig part = whole;
  part.steps = 1;
  TrainingRun last = train(world, part, train_set, test_set);
  for (std::int64_t step = 1;; ++step) {
    const Checkpoint reached = last.checkpoints.of_step(step);
    expect_same(reached, undisturbed.checkpoints.of_step(step));
    expect_same(last.rank0.steps.back(), undisturbed.rank0.steps[static_cast<std::size_t>(step - 1)]);
    if (step == whole.steps || HasFailure()) break;
    part.steps = step + 1;
    last = resumed(world, part, train_set, test_set, reached);
    ASSERT_EQ(last.rank0.steps.size(), 1u);
  }
  EXPECT_EQ(last.summaries.front().parameters_sha256, undisturbed.summaries.front().parameters_sha256);
  EXPECT_EQ(last.summaries.front().train_loss, undisturbed.summaries.front().train_loss);
  EXPECT_EQ(last.summaries.front().accuracy, undisturbed.summaries.front().accuracy);
}

INSTANTIATE_TEST_SUITE_P(
    Trainings, Resume,
    ::testing::Values(
        ResumeCase{.name = "Adam"}, ResumeCase{.name = "Sgd", .optimizer = train::OptimizerKind::sgd},
        ResumeCase{.name = "AdamFp16", .precision = train::Precision::fp16},
        ResumeCase{.name = "TwoRanksAveragingFp16", .world = 2, .precision = train::Precision::fp16, .ema = 0.9},
        ResumeCase{.name = "SgdFp16", .optimizer = train::OptimizerKind::sgd, .precision = train::Precision::fp16},
        ResumeCase{.name = "TwoRanks", .world = 2},
        ResumeCase{
            .name = "TwoRanksAugmented", .world = 2, .augment = "crop=2,flip=alternating,mixup=0.4,cutmix=1,cutout=4"},
        ResumeCase{.name = "TwoRanksSgdFp16",
                   .world = 2,
                   .optimizer = train::OptimizerKind::sgd,
                   .precision = train::Precision::fp16},
        ResumeCase{.name = "TwoRanksMuonFp16",
                   .world = 2,
                   .optimizer = train::OptimizerKind::muon,
                   .precision = train::Precision::fp16},
        ResumeCase{.name = "Accumulating", .accumulate = 3, .batch_size = 2},
        ResumeCase{.name = "TwoRanksAccumulatingFp16",
                   .world = 2,
                   .precision = train::Precision::fp16,
                   .accumulate = 2,
                   .batch_size = 2}),
    [](const auto& test) { return std::string(test.param.name); });

class ResumeElsewhere : public ::testing::Test {
 protected:
  std::unique_ptr<data::Dataset> digits_ = data::open_dataset("digits", data::Split::train, "");
  data::InMemoryDataset train_set_ = head_of(*digits_, 48), test_set_ = head_of(*digits_, 3);

  Checkpoint checkpoint_of(const train::TrainConfig& config, std::int64_t step) const {
    return train(1, config, train_set_, test_set_).checkpoints.of_step(step);
  }
  /// What is said where a checkpoint is refused.
  template <class Error>
  std::string refusal(const train::TrainConfig& config, const Checkpoint& from) const {
    return message_of<Error>([&] { resumed(1, config, train_set_, test_set_, from); });
  }
};

TEST_F(ResumeElsewhere, GoesOnWithinAnEpochByMoreRanksOfSmallerBatches) {
  train::TrainConfig config = config_for(1, 16);
  config.save_every_steps = 1;
  const TrainingRun one = train(1, config, train_set_, test_set_);
  config.batch_size = 8;
  const TrainingRun two = resumed(2, config, train_set_, test_set_, one.checkpoints.of_step(1));
  ASSERT_EQ(two.rank0.steps.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(two.rank0.steps[i].loss, one.rank0.steps[i + 1].loss, 1e-4);
}

TEST_F(ResumeElsewhere, DoesNotGoOnWithinAnEpochOfOtherSamples) {
  train::TrainConfig config = config_for(2, 16);
  config.save_every_steps = 1;
  const Checkpoint within = checkpoint_of(config, 2), at_end = checkpoint_of(config, 3);
  config.seed = 1;
  EXPECT_THAT(refusal<train::UsageError>(config, within),
              AllOf(HasSubstr("step-2 was saved in epoch 1, after sample 32"), HasSubstr(R"("seed":0)"),
                    HasSubstr("checkpoint at the end of an epoch")));
  EXPECT_EQ(resumed(1, config, train_set_, test_set_, at_end).rank0.steps.front().step, 4);
}

TEST_F(ResumeElsewhere, DoesNotCutAStepInTwo) {
  train::TrainConfig config = config_for(1, 16);
  config.save_every_steps = 1;
  const Checkpoint within = checkpoint_of(config, 1);
  config.batch_size = 12;
  EXPECT_THAT(refusal<train::UsageError>(config, within),
              AllOf(HasSubstr("expected a multiple of the 12 samples of a step"), HasSubstr("--batch-size")));
}

TEST_F(ResumeElsewhere, NamesWhatAnotherOptimizerLacks) {
  train::TrainConfig config = config_for(1, 16);
  config.optimizer = {.kind = train::OptimizerKind::sgd, .momentum = 0.9};
  const Checkpoint checkpoint = checkpoint_of(config, 3);
  config.epochs = 2;
  config.optimizer = {};
  EXPECT_THAT(
      refusal<train::CheckpointError>(config, checkpoint),
      AllOf(HasSubstr("exp_avg.conv_layers.0.weight"), HasSubstr("momentum_buffer."), HasSubstr("--optimizer")));
}

TEST_F(ResumeElsewhere, NamesTheAveragesThatAreMissing) {
  train::TrainConfig config = config_for(1, 16);
  const Checkpoint without = checkpoint_of(config, 3);
  config.epochs = 2;
  config.optimizer.ema = 0.9;
  EXPECT_THAT(refusal<train::CheckpointError>(config, without),
              AllOf(HasSubstr("ema.conv_layers.0.weight"), HasSubstr("--ema")));
}

TEST_F(ResumeElsewhere, NamesTheWeightsOfAnotherModel) {
  Checkpoint checkpoint = checkpoint_of(config_for(1, 16), 3);
  checkpoint.model.front().name = "conv_layers.0.gamma";
  EXPECT_THAT(refusal<train::CheckpointError>(config_for(2, 16), checkpoint),
              AllOf(HasSubstr("conv_layers.0.gamma"), HasSubstr("conv_layers.0.weight"), HasSubstr("--model")));
}

/// A loss scale goes on in the precision that it was found for.
TEST_F(ResumeElsewhere, KeepsTheLossScaleOfItsPrecisionOnly) {
  const auto config = [](train::Precision precision, double loss_scale, std::int64_t epochs) {
    train::TrainConfig made = config_for(epochs, 16);
    made.precision = precision;
    made.loss_scale = loss_scale;
    return made;
  };
  const auto first_scale = [&](const train::TrainConfig& now, const Checkpoint& from) {
    return resumed(1, now, train_set_, test_set_, from).rank0.steps.front().loss_scale;
  };
  const Checkpoint half = checkpoint_of(config(train::Precision::fp16, 1024, 1), 3),
                   single = checkpoint_of(config(train::Precision::fp32, 4096, 1), 3);
  EXPECT_EQ(first_scale(config(train::Precision::fp16, 2048, 2), half), 1024) << "the checkpoint's, not the option's";
  EXPECT_EQ(first_scale(config(train::Precision::fp32, 2048, 2), half), 1);
  EXPECT_EQ(first_scale(config(train::Precision::fp16, 2048, 2), single), 2048) << "fp32 had no scale to go on with";
  EXPECT_EQ(first_scale(config(train::Precision::bf16, 2048, 2), single), 1);
}

TEST_F(ResumeElsewhere, CountsTheStepsOfAnImportedOptimizer) {
  const TrainingRun first = train(1, config_for(1, 16), train_set_, test_set_);
  Checkpoint checkpoint = first.checkpoints.of_step(3);
  (*checkpoint.about)["progress"]["imported_steps"] = 40;
  (*checkpoint.about)["step_state"]["applied_steps"] = 43;
  const TrainingRun second = resumed(1, config_for(2, 16), train_set_, test_set_, checkpoint);
  const auto& about = *second.checkpoints.of_step(6).about;
  EXPECT_EQ(about["progress"]["imported_steps"], 40);
  EXPECT_EQ(about["step_state"]["applied_steps"], 46);
}

TEST_F(ResumeElsewhere, NamesCountersThatContradictEachOther) {
  Checkpoint checkpoint = checkpoint_of(config_for(1, 16), 3);
  (*checkpoint.about)["progress"]["epoch"] = 1'000'000'000;
  EXPECT_THAT(refusal<train::CheckpointError>(config_for(2, 16), checkpoint),
              HasSubstr("step-3/meta.json has 'progress.epoch' = 1000000000, expected at most 3 after 3 steps"));
}

TEST_F(ResumeElsewhere, WhatIsOverIsEvaluatedAndNothingMore) {
  const TrainingRun whole = train(1, config_for(1, 16), train_set_, test_set_);
  const TrainingRun again = resumed(1, config_for(1, 16), train_set_, test_set_, whole.checkpoints.of_step(3));
  EXPECT_TRUE(again.rank0.steps.empty());
  EXPECT_TRUE(again.rank0.evals.empty()) << "that of the epoch stands in the metrics already";
  EXPECT_TRUE(again.checkpoints.all.empty());
  EXPECT_EQ(again.summaries.front().parameters_sha256, whole.summaries.front().parameters_sha256);
  EXPECT_EQ(again.summaries.front().accuracy, whole.summaries.front().accuracy);
  EXPECT_EQ(again.summaries.front().train_loss, whole.summaries.front().train_loss);
}

TEST_F(ResumeElsewhere, CheckpointsSayHowGoodTheyAre) {
  train::TrainConfig config = config_for(2, 16);
  config.save_every_steps = 2;
  const TrainingRun run = train(1, config, train_set_, test_set_);
  std::vector<std::int64_t> steps;
  for (const Checkpoint& checkpoint : run.checkpoints.all) steps.push_back(checkpoint.step);
  EXPECT_THAT(steps, ::testing::ElementsAre(2, 3, 4, 6)) << "an epoch's end and a step's in one";
  EXPECT_FALSE(run.checkpoints.of_step(2).score);
  EXPECT_EQ(run.checkpoints.of_step(3).score, run.rank0.evals[0].accuracy);
  EXPECT_EQ(run.checkpoints.of_step(6).score, run.rank0.evals[1].accuracy);
}

TEST_F(ResumeElsewhere, BeginsWithWeightsInOtherSpellings) {
  const TrainingRun teacher = train(1, config_for(2, 48), train_set_, test_set_);
  auto weights = teacher.checkpoints.of_step(1).model;
  for (auto& tensor : weights) tensor.name = "module." + tensor.name;
  const TrainingRun pupil = train(2, config_for(1, 24), train_set_, test_set_, [&](train::Trainer& trainer, int rank) {
    trainer.begin_with({.tensors = rank == 0 ? weights : std::vector<train::TensorRecord>(), .from = "weights.pt"});
  });
  ASSERT_EQ(pupil.rank0.steps.size(), 1u);
  EXPECT_NEAR(pupil.rank0.steps[0].loss, teacher.rank0.steps[1].loss, 1e-5) << "all samples, in another order";
}

/// --reinit: another head, whose shape in the file may differ.
TEST_F(ResumeElsewhere, InitializesTensorsAnewThatTheWeightsDoNotSet) {
  const auto weights = train(1, config_for(1, 48), train_set_, test_set_).checkpoints.of_step(1).model;
  const std::vector<nn::Parameter> parameters =
      nn::parameters_of(nn::convnet(train_set_.shape(), train_set_.classes()));
  const auto drawn = nn::draw_torch_uniform(parameters, config_for(1, 24).seed);
  std::vector<train::TensorRecord> with_fresh_head = weights, of_other_classes = weights;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!weights[i].name.starts_with("fc_layers.2.")) continue;
    const auto bytes = std::as_bytes(std::span(drawn[i]));
    with_fresh_head[i].bytes.assign(bytes.begin(), bytes.end());
    of_other_classes[i].shape[0] = 5;
    of_other_classes[i].bytes.resize(bytes.size() / 2);
  }
  const auto losses = [&](const std::vector<train::TensorRecord>& tensors, const std::string& reinit) {
    train::TrainConfig config = config_for(1, 24);
    config.reinit = reinit;
    const TrainingRun run = train(2, config, train_set_, test_set_, [&](train::Trainer& trainer, int rank) {
      trainer.begin_with({.tensors = rank == 0 ? tensors : std::vector<train::TensorRecord>(), .from = "weights.pt"});
    });
    return run.rank0.steps.at(0).loss;
  };
  EXPECT_EQ(losses(of_other_classes, "fc_layers.2.*"), losses(with_fresh_head, ""));
  EXPECT_NE(losses(weights, ""), losses(with_fresh_head, ""));
  try {
    losses(of_other_classes, "");
    ADD_FAILURE() << "a head of another shape";
  } catch (const train::CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has 'fc_layers.2.weight' of shape [5, 256], expected [10, 256]"));
    EXPECT_THAT(error.what(), HasSubstr("with --reinit 'fc_layers.2.*'"));
  }
}

/// The test set of a training whose evaluation fails.
class UnreadableDataset final : public data::Dataset {
 public:
  explicit UnreadableDataset(const data::Dataset& like) : like_(like) {}
  std::string_view name() const override { return like_.name(); }
  std::int64_t size() const override { return like_.size(); }
  kernels::Shape shape() const override { return like_.shape(); }
  int classes() const override { return like_.classes(); }
  std::span<const std::string> class_names() const override { return like_.class_names(); }
  std::span<const std::uint8_t> pixels(std::int64_t) const override { throw Error("cannot be read"); }
  int label(std::int64_t index) const override { return like_.label(index); }

 private:
  const data::Dataset& like_;
};

TEST(ResumeOfAnEpoch, BeginsWithTheEvaluationThatFailed) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto train_set = head_of(*digits, 12), test_set = head_of(*digits, 5);
  const train::TrainConfig config = config_for(2, 4);
  const TrainingRun whole = train(1, config, train_set, test_set);
  TrainingRun failed;
  EXPECT_THROW(train(failed, 1, config, train_set, UnreadableDataset(test_set)), Error);
  ASSERT_EQ(failed.checkpoints.all.size(), 1u) << "no step is lost";
  const TrainingRun rest = resumed(1, config, train_set, test_set, failed.checkpoints.all.front());
  ASSERT_EQ(rest.rank0.evals.size(), 2u);
  for (std::size_t epoch : {0, 1}) EXPECT_EQ(rest.rank0.evals[epoch].loss, whole.rank0.evals[epoch].loss);
  EXPECT_EQ(rest.rank0.steps.size(), 3u) << "of the second epoch";
  EXPECT_EQ(rest.summaries.front().parameters_sha256, whole.summaries.front().parameters_sha256);
}

}  // namespace
}  // namespace gradring::tests
