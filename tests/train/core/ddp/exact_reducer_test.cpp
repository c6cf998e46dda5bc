// SPDX-License-Identifier: Apache-2.0
// However a step's samples are dealt to ranks and passes, it is the step of one big batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/datasets/open_dataset.h"
#include "tests/support/sanitizer.h"
#include "tests/train/support/training_run.h"

namespace gradring::tests {
namespace {

constexpr std::int64_t kSamples = 61;  // steps of 24, 24 and 13 samples

class ExactGradients : public ::testing::Test {
 protected:
  static train::TrainConfig config() {
    train::TrainConfig config = config_for(kThreadSanitizer ? 1 : 3, 64);
    config.global_batch = 24;
    config.sampler = train::Sampler::sharded;
    config.shard_size = 24;
    config.optimizer = {.kind = train::OptimizerKind::sgd, .momentum = 0.9};
    config.learning_rate = 1e-2;
    return config;
  }
  TrainingRun run(int world, const train::TrainConfig& config) const {
    return train(world, config, train_set_, test_set_);
  }

  std::unique_ptr<data::Dataset> digits_ = data::open_dataset("digits", data::Split::train, "");
  data::InMemoryDataset train_set_ = head_of(*digits_, kSamples), test_set_ = head_of(*digits_, 7);
};

/// The largest difference of two runs' losses in a step.
double farthest(const TrainingRun& a, const TrainingRun& b) {
  EXPECT_EQ(a.rank0.steps.size(), b.rank0.steps.size());
  double most = 0;
  for (std::size_t i = 0; i < std::min(a.rank0.steps.size(), b.rank0.steps.size()); ++i)
    most = std::max(most, std::abs(a.rank0.steps[i].loss - b.rank0.steps[i].loss));
  return most;
}

TEST_F(ExactGradients, AreThoseOfOneBigBatchWhateverTheShards) {
  const TrainingRun one = run(1, config());
  EXPECT_EQ(one.rank0.steps[0].samples, 24);
  EXPECT_EQ(one.rank0.steps[2].samples, 13);
  for (const int world : {1, 2, 3, 4})
    for (const std::int64_t shard : {4, 8, 12}) {  // 4 ranks share 3 or 2 shards: some have none
      train::TrainConfig cut = config();
      cut.shard_size = shard;
      EXPECT_LT(farthest(run(world, cut), one), 1e-4) << world << " ranks, shards of " << shard;
    }
}

std::string sha256_of(const TrainingRun& run) { return run.summaries.front().parameters_sha256; }

TEST_F(ExactGradients, AreTheSameBitsByEveryStageOfZeroWhereRanksHaveUnequalPasses) {
  for (const int world : {3, 4})
    for (const std::int64_t shard : {4, 8}) {  // 4 ranks: 2, 2, 1 and 1 passes, or one without samples
      train::TrainConfig shared = config();
      shared.shard_size = shard;
      const TrainingRun whole = run(world, shared);
      for (const std::int64_t zero : {1, 2, 3}) {
        shared.zero = zero;
        EXPECT_EQ(sha256_of(run(world, shared)), sha256_of(whole))
            << world << " ranks, shards of " << shard << ", stage " << zero;
      }
      shared.sync_every_pass = true;
      EXPECT_LT(farthest(run(world, shared), whole), 1e-4) << world << " ranks, shards of " << shard;
    }
}

TEST_F(ExactGradients, AreTheSameByTheDistributedSamplerWhereItNeedNotRepeatSamples) {
  const data::InMemoryDataset even = head_of(*digits_, 48);
  const TrainingRun one = train(1, config(), even, test_set_);
  for (const int world : {1, 2, 3, 4})
    for (const std::int64_t pass : {5, 24}) {
      train::TrainConfig dealt = config();
      dealt.sampler = train::Sampler::distributed;
      dealt.shard_size = 0;
      dealt.batch_size = pass;
      EXPECT_LT(farthest(train(world, dealt, even, test_set_), one), 1e-4) << world << " ranks, passes of " << pass;
    }
}

TEST_F(ExactGradients, AreNotTheMeanOfUnequalRanksMeans) {
  train::TrainConfig uneven = config();
  uneven.shard_size = 8;  // two ranks have 16 and 8 samples
  uneven.epochs = 3;      // in which the difference grows, under ThreadSanitizer too
  const TrainingRun exact = run(2, uneven);
  uneven.gradient_mean = train::GradientMean::ranks;
  const TrainingRun as_pytorch = run(2, uneven);
  EXPECT_EQ(as_pytorch.rank0.steps[0].loss, exact.rank0.steps[0].loss) << "before the first update";
  EXPECT_GT(farthest(as_pytorch, exact), 1e-3);
  uneven.shard_size = 12;  // they have 12 each, but in the last step, of 13
  const TrainingRun even = run(2, uneven);
  uneven.gradient_mean = train::GradientMean::samples;
  const TrainingRun even_exact = run(2, uneven);
  EXPECT_EQ(even.rank0.steps[2].loss, even_exact.rank0.steps[2].loss) << "after two steps of equal shares";
}

TEST_F(ExactGradients, GoOnFromACheckpointByAnyNumberOfRanks) {
  train::TrainConfig whole = config();
  whole.epochs = 1;
  whole.shard_size = 4;
  whole.save_every_steps = 1;
  const TrainingRun one = run(1, whole);
  for (const int world : {2, 3, 5}) {
    const TrainingRun rest = train(world, whole, train_set_, test_set_, [&](train::Trainer& trainer, int rank) {
      trainer.resume({.checkpoint = rank == 0 ? one.checkpoints.of_step(1) : train::Checkpoint(), .from = "step-1"});
    });
    ASSERT_EQ(rest.rank0.steps.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(rest.rank0.steps[i].loss, one.rank0.steps[i + 1].loss, 1e-4) << world << " ranks";
      EXPECT_EQ(rest.rank0.steps[i].samples, one.rank0.steps[i + 1].samples);
    }
  }
}

}  // namespace
}  // namespace gradring::tests
