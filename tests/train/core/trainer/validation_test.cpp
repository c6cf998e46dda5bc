// SPDX-License-Identifier: Apache-2.0
// A validation set (--val-split) selects checkpoints in place of the test set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/datasets/open_dataset.h"
#include "data/loader/random_split.h"
#include "tests/data/support/message_of.h"
#include "tests/train/support/training_run.h"
#include "train/options/usage_error.h"

namespace gradring::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// One request, after so many steps.
class RequestAfter final : public train::RunRequests {
 public:
  RequestAfter(train::RunRequest request, std::int64_t steps) : request_(request), steps_(steps) {}
  train::RunRequest take() override { return ++made_ == steps_ ? request_ : train::RunRequest::none; }
  void at(const train::RunPosition&) override {}

 private:
  train::RunRequest request_;
  std::int64_t steps_;
  std::int64_t made_ = 0;
};

class Validation : public ::testing::Test {
 protected:
  static std::shared_ptr<const data::Dataset> head(data::Split split, std::int64_t samples) {
    return std::make_shared<data::InMemoryDataset>(head_of(*data::open_dataset("digits", split, ""), samples));
  }
  TrainingRun train_with(const data::Dataset* validation, const train::TrainConfig& config, int world = 2,
                         const std::function<void(train::Trainer&, int rank)>& begin = {}) const {
    TrainingRun run;
    train(run, world, config, *split_.rest, *test_set_, begin, {}, validation);
    return run;
  }
  static std::function<void(train::Trainer&, int rank)> resuming(const train::Checkpoint& from) {
    return [&from](train::Trainer& trainer, int rank) {
      trainer.resume({.checkpoint = rank == 0 ? from : train::Checkpoint(), .from = "step-N"});
    };
  }

  std::shared_ptr<const data::Dataset> whole_ = head(data::Split::train, 100);
  std::shared_ptr<const data::Dataset> test_set_ = head(data::Split::test, 30);
  data::RandomSplit split_ = data::random_split(whole_, 17, 0);
  train::TrainConfig config_ = config_for(3, 4);
};

TEST_F(Validation, SelectsCheckpointsAndLeavesTheTestSetForTheEnd) {
  config_.eval_every = 7;
  const TrainingRun run = train_with(split_.held_out.get(), config_);
  std::vector<train::EvalRecord> of_epochs;
  for (const train::EvalRecord& eval : run.rank0.evals) {
    const bool last = &eval == &run.rank0.evals.back();
    EXPECT_EQ(eval.split, last ? "test" : "validation");
    EXPECT_EQ(eval.samples, last ? 30 : 17);
    if (eval.ends_epoch) of_epochs.push_back(eval);
  }
  ASSERT_EQ(of_epochs.size(), 4u);
  ASSERT_EQ(run.checkpoints.all.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(run.checkpoints.all[i].score, of_epochs[i].accuracy);
  EXPECT_EQ(of_epochs[3].epoch, 3);
  const train::Summary& summary = run.summaries.front();
  EXPECT_EQ(summary.accuracy, of_epochs[3].accuracy);
  EXPECT_EQ(summary.loss, of_epochs[3].loss);
  EXPECT_EQ(summary.validation_accuracy, of_epochs[2].accuracy);
  EXPECT_EQ(summary.validation_loss, of_epochs[2].loss);
  const auto samples_in = [](const std::vector<train::ClassResult>& classes) {
    std::int64_t samples = 0;
    for (const train::ClassResult& of : classes) samples += of.samples;
    return samples;
  };
  EXPECT_EQ(samples_in(summary.validation_classes), 17);
  EXPECT_EQ(samples_in(summary.classes), 30);
}

TEST_F(Validation, ChangesNoBitOfTheTraining) {
  for (const int zero : {0, 3}) {
    config_.zero = zero;
    const TrainingRun with = train_with(split_.held_out.get(), config_), without = train_with(nullptr, config_);
    EXPECT_EQ(with.summaries.front().parameters_sha256, without.summaries.front().parameters_sha256);
    EXPECT_EQ(with.summaries.front().accuracy, without.summaries.front().accuracy);
    EXPECT_EQ(without.summaries.front().validation_accuracy, std::nullopt);
    for (const train::EvalRecord& eval : without.rank0.evals) EXPECT_EQ(eval.split, "test");
  }
}

/// A request is met before the evaluation; the checkpoint must be able to become the best one all the same.
TEST_F(Validation, ScoresACheckpointThatWasRequestedAtTheEndOfAnEpoch) {
  const data::Dataset* const held_out = split_.held_out.get();
  const TrainingRun whole = train_with(held_out, config_, 1);
  const std::int64_t epoch = whole.checkpoints.all.front().step;
  RequestAfter save(train::RunRequest::save, epoch);
  TrainingRun run;
  run.requests = &save;
  train(run, 1, config_, *split_.rest, *test_set_, {}, {}, held_out);
  ASSERT_EQ(run.checkpoints.all.size(), 3u);
  EXPECT_EQ(run.checkpoints.all[0].step, epoch);
  EXPECT_EQ(run.checkpoints.all[0].score, whole.checkpoints.all[0].score) << "saved again, with its score";

  config_.steps = 2 * epoch;
  for (const std::int64_t steps : {epoch, 2 * epoch}) {  // an epoch is left, and nothing is
    RequestAfter stop(train::RunRequest::stop, steps);
    TrainingRun stopped;
    stopped.requests = &stop;
    EXPECT_THROW(train(stopped, 1, config_, *split_.rest, *test_set_, {}, {}, held_out), train::Preempted);
    const train::Checkpoint& last = stopped.checkpoints.all.back();
    EXPECT_EQ(last.step, steps);
    EXPECT_FALSE(last.score);
    const TrainingRun resumed = train_with(held_out, config_, 1, resuming(last));
    EXPECT_EQ(resumed.checkpoints.of_step(steps).score, whole.checkpoints.of_step(steps).score);
  }
}

/// At a learning rate of 0, no epoch is better than the first.
TEST_F(Validation, StopsEarlyAfterEpochsWithoutAHigherAccuracy) {
  config_ = config_for(9, 4);
  config_.learning_rate = 0;
  config_.early_stop = 2;
  const data::Dataset* const held_out = split_.held_out.get();
  const TrainingRun run = train_with(held_out, config_);
  ASSERT_EQ(run.checkpoints.all.size(), 3u) << "epochs";
  EXPECT_THAT(run.rank0.remarks, ::testing::Contains(HasSubstr("stopped early after epoch 3: 2 epochs without")));
  EXPECT_EQ(run.rank0.evals.back().split, "test");
  for (std::size_t epochs = 1; epochs <= 3; ++epochs) {
    const TrainingRun resumed = train_with(held_out, config_, 2, resuming(run.checkpoints.all[epochs - 1]));
    EXPECT_EQ(resumed.summaries.front().steps, run.summaries.front().steps) << "resumed after epoch " << epochs;
  }
  config_.early_stop = 4;
  const TrainingRun longer = train_with(held_out, config_, 2, resuming(run.checkpoints.all.back()));
  EXPECT_EQ(longer.rank0.evals.back().epoch, 5);
  config_.early_stop = 0;
  const TrainingRun all = train_with(held_out, config_, 2, resuming(run.checkpoints.all.back()));
  EXPECT_EQ(all.rank0.evals.back().epoch, 9);
}

TEST_F(Validation, GoesOnWhileItImproves) {
  config_ = config_for(4, 4);
  config_.early_stop = 1;
  const TrainingRun run = train_with(split_.held_out.get(), config_, 1);
  std::optional<double> best;
  for (const train::EvalRecord& eval : run.rank0.evals) {
    const bool is_last = eval.step == run.summaries.front().steps;
    if (eval.split != "validation") continue;
    EXPECT_TRUE(is_last || !best || eval.accuracy > *best) << "after epoch " << eval.epoch;
    best = std::max(best.value_or(0), eval.accuracy);
  }
}

TEST_F(Validation, StaysTheSameInAResume) {
  config_.save_every_steps = 4;
  const TrainingRun whole = train_with(split_.held_out.get(), config_);
  for (const std::size_t place : {0u, 2u}) {  // in an epoch, and after one
    const train::Checkpoint& from = whole.checkpoints.all[place];
    const TrainingRun resumed = train_with(split_.held_out.get(), config_, 1, resuming(from));
    EXPECT_EQ(resumed.rank0.evals.back().split, "test");
    for (const train::EvalRecord& eval : resumed.rank0.evals) EXPECT_EQ(eval.samples, eval.split == "test" ? 30 : 17);
  }
}

TEST_F(Validation, RejectsAResumeWithAnotherSplit) {
  const TrainingRun with = train_with(split_.held_out.get(), config_, 1), without = train_with(nullptr, config_, 1);
  config_.epochs = 4;
  const data::RandomSplit other = data::random_split(whole_, 10, 0);
  EXPECT_THAT(message_of<train::UsageError>(
                  [&] { train_with(other.held_out.get(), config_, 1, resuming(with.checkpoints.all.back())); }),
              AllOf(HasSubstr("17 validation samples by seed 0"), HasSubstr("10 validation samples"),
                    HasSubstr("--val-split"), HasSubstr("--weights")));
  EXPECT_THAT(
      message_of<train::UsageError>([&] { train_with(nullptr, config_, 1, resuming(with.checkpoints.all.back())); }),
      HasSubstr("no validation set"));
  EXPECT_THROW(train_with(split_.held_out.get(), config_, 1, resuming(without.checkpoints.all.back())),
               train::UsageError);
  config_.seed = 1;
  EXPECT_THROW(train_with(split_.held_out.get(), config_, 1, resuming(with.checkpoints.all.back())), train::UsageError)
      << "another seed holds out other samples";
  EXPECT_NO_THROW(train_with(nullptr, config_, 1, resuming(without.checkpoints.all.back())))
      << "without a split, the seed may change after an epoch";
}

}  // namespace
}  // namespace gradring::tests
