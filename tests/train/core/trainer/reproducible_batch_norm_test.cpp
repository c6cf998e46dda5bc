// SPDX-License-Identifier: Apache-2.0
// Reproducible training of a model with batch normalization: the bits of weights and running statistics do not depend on
// the number of ranks that normalize a micro-batch together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "data/datasets/open_dataset.h"
#include "tests/support/sanitizer.h"
#include "tests/train/support/training_run.h"
#include "train/options/usage_error.h"

namespace gradring::tests {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr const char* kModel = R"(
layers = [
  { conv2d = "conv1", out = 6, kernel = 3, stride = 2, bias = false },
  { batch_norm2d = "bn1" },
  { relu = "relu1" },
  { conv2d = "depthwise", out = "in", kernel = 3, padding = 1, groups = "in" },
  { batch_norm2d = "bn2" },
  { add = "sum", inputs = ["bn2", "relu1"] },
  { relu = "relu2" },
  { max_pool2d = "pool1", kernel = 2 },
  { dropout = "drop", p = 0.25 },
  { conv2d = "conv2", out = 5, kernel = 1, bias = false },
  { batch_norm2d = "bn3", momentum = 0.5 },
  { global_avg_pool2d = "pool2" },
  { flatten = "flatten" },
  { linear = "fc", out = "classes" },
]
)";

class ReproducibleBatchNorm : public ::testing::TestWithParam<train::Precision> {
 protected:
  /// Steps of two micro-batches of 12 samples in 4 shards; the last one of an epoch has 12 and 7.
  static train::TrainConfig config() {
    train::TrainConfig config = config_for(2, 64);
    config.model = "batch-norm.toml";
    config.model_text = kModel;
    config.reproducible = config.sync_batchnorm = true;
    config.global_batch = 24;
    config.accumulate = 2;
    config.shard_size = 3;
    config.precision = GetParam();
    config.loss_scale = 0x1p14;
    config.optimizer = {.kind = train::OptimizerKind::sgd, .momentum = 0.9};
    config.learning_rate = 0.05;
    return config;
  }
  TrainingRun run(int world, const train::TrainConfig& config, const train::ResumePoint& from = {}) const {
    return train(world, config, train_set_, test_set_, [&](train::Trainer& trainer, int rank) {
      if (!from.from.empty())
        trainer.resume({.checkpoint = rank == 0 ? from.checkpoint : train::Checkpoint(), .from = from.from});
    });
  }
  static std::string hash_of(const TrainingRun& run) { return run.summaries.front().parameters_sha256; }
  static void expect_same(const TrainingRun& actual, const TrainingRun& expected, const std::string& layout) {
    EXPECT_EQ(hash_of(actual), hash_of(expected)) << layout;
    ASSERT_LE(actual.rank0.steps.size(), expected.rank0.steps.size());
    const std::size_t before = expected.rank0.steps.size() - actual.rank0.steps.size();
    for (std::size_t i = 0; i < actual.rank0.steps.size(); ++i)
      EXPECT_EQ(actual.rank0.steps[i].loss, expected.rank0.steps[before + i].loss) << layout << ", step " << i;
  }

  std::unique_ptr<data::Dataset> digits_ = data::open_dataset("digits", data::Split::train, "");
  data::InMemoryDataset train_set_ = head_of(*digits_, 67);
  data::InMemoryDataset test_set_ = head_of(*digits_, 5);
};

std::vector<int> world_sizes(const std::vector<int>& all) { return kThreadSanitizer ? std::vector{3} : all; }

TEST_P(ReproducibleBatchNorm, HasOneHashForAnyNumberOfRanks) {
  const TrainingRun one = run(1, config());
  ASSERT_EQ(one.rank0.steps.size(), 6u);
  EXPECT_LT(one.rank0.steps.back().loss, one.rank0.steps.front().loss);
  for (const int world : world_sizes({2, 3, 4, 7}))  // of 7 ranks 3 have no samples
    for (const std::int64_t zero : {0, 1, 2, 3}) {
      train::TrainConfig other = config();
      other.zero = zero;
      const std::string layout = std::to_string(world) + " ranks, ZeRO " + std::to_string(zero);
      expect_same(run(world, other), one, layout);
      other.checkpointing = {.kind = nn::Checkpointing::Kind::segments, .segments = 2};
      other.buckets = {.first_bytes = 1, .rest_bytes = 400};
      expect_same(run(world, other), one, layout + ", small buckets, activations recomputed");
    }
  train::TrainConfig in_place = config();
  in_place.overlap = false;
  expect_same(run(3, in_place), one, "without overlap");
}

TEST_P(ReproducibleBatchNorm, HasItForEqualSamplesOfAllRanks) {
  train::TrainConfig by_batches = config();
  by_batches.global_batch = 0;
  by_batches.shard_size = 1;
  by_batches.batch_size = 12;
  const TrainingRun one = run(1, by_batches);
  for (const int world : world_sizes({2, 3, 4})) {
    by_batches.batch_size = 12 / world;
    expect_same(run(world, by_batches), one, std::to_string(world) + " ranks");
  }
}

TEST_P(ReproducibleBatchNorm, ResumesOnOtherRanks) {
  train::TrainConfig saving = config();
  saving.save_every_steps = 1;
  saving.zero = 2;
  const TrainingRun whole = run(4, saving);
  for (const std::int64_t step : {2, 4})
    for (const int world : world_sizes({1, 3}))
      for (const std::int64_t zero : {0, 3}) {
        train::TrainConfig resumed = saving;
        resumed.zero = zero;
        expect_same(run(world, resumed, {.checkpoint = whole.checkpoints.of_step(step), .from = "step"}), whole,
                    std::to_string(world) + " ranks from step " + std::to_string(step));
      }
}

/// The statistics of averaged weights (--ema), which a pass over the training set finds.
TEST_P(ReproducibleBatchNorm, HasOneSetOfAveragedStatisticsForAnyNumberOfRanks) {
  train::TrainConfig averaging = config();
  averaging.epochs = 1;
  averaging.optimizer.ema = 0.9;
  const auto averaged = [](const TrainingRun& run) {
    std::map<std::string, std::vector<std::byte>> found;
    for (const train::TensorRecord& tensor : run.checkpoints.all.back().state)
      if (tensor.name.find(".running_") != std::string::npos) found[tensor.name] = tensor.bytes;
    return found;
  };
  const TrainingRun one = run(1, averaging);
  ASSERT_EQ(averaged(one).size(), 6u);
  for (const int world : world_sizes({2, 3, 7}))
    EXPECT_EQ(averaged(run(world, averaging)), averaged(one)) << world << " ranks";
}

TEST_P(ReproducibleBatchNorm, RejectsAnotherMicroBatchOnAResume) {
  train::TrainConfig saving = config();
  saving.save_every_steps = 1;
  const TrainingRun whole = run(1, saving);
  const auto resumed = [&](const train::TrainConfig& config) {
    return run(1, config, {.checkpoint = whole.checkpoints.of_step(2), .from = "step-2"});
  };
  train::TrainConfig whole_steps = saving, smaller_shards = saving;
  whole_steps.accumulate = 1;
  smaller_shards.shard_size = 1;
  EXPECT_NE(hash_of(run(1, whole_steps)), hash_of(whole)) << "else the bits do not depend on it";
  EXPECT_NE(hash_of(run(1, smaller_shards)), hash_of(whole));
  for (const train::TrainConfig& other : {whole_steps, smaller_shards}) {
    try {
      resumed(other);
      FAIL() << "was resumed";
    } catch (const train::UsageError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("checkpoint step-2 was saved by a reproducible training with"),
                                      AnyOf(HasSubstr("resume with --accumulate 2, or without --reproducible"),
                                            HasSubstr("resume with --shard-size 3, or without --reproducible"))));
    }
  }
  whole_steps.reproducible = false;
  whole_steps.sampler = train::Sampler::sharded;
  EXPECT_EQ(resumed(whole_steps).rank0.steps.size(), 4u) << "without --reproducible";
}

TEST_P(ReproducibleBatchNorm, IsNotWhatFloatsGive) {
  train::TrainConfig floats = config();
  floats.reproducible = false;
  floats.accumulate = 1;
  floats.sampler = train::Sampler::sharded;
  EXPECT_NE(hash_of(run(2, floats)), hash_of(run(3, floats))) << "else this file's other tests show nothing";
}

/// The same micro-batches are normalized together, so that leaving --reproducible changes a training by rounding only.
TEST_P(ReproducibleBatchNorm, IsToRoundingWhatShardsGiveWithoutIt) {
  if (GetParam() != train::Precision::fp32) GTEST_SKIP() << "to the rounding of fp32";
  train::TrainConfig floats = config();
  floats.optimizer = {.kind = train::OptimizerKind::sgd};
  floats.learning_rate = 0.01;
  const TrainingRun exact = run(1, floats);
  floats.reproducible = false;
  floats.sampler = train::Sampler::sharded;
  for (const int world : {1, 3}) {
    const TrainingRun other = run(world, floats);
    ASSERT_EQ(other.rank0.steps.size(), exact.rank0.steps.size());
    for (std::size_t i = 0; i < exact.rank0.steps.size(); ++i)
      EXPECT_NEAR(other.rank0.steps[i].loss, exact.rank0.steps[i].loss, 1e-5) << world << " ranks, step " << i;
  }
}

/// A pass over several shards has the bits of a pass for each.
TEST_P(ReproducibleBatchNorm, ChangesNoModelWithoutIt) {
  train::TrainConfig plain = config();
  plain.epochs = 1;
  plain.model = "convnet";
  plain.model_text.clear();
  const TrainingRun together = run(2, plain);
  plain.sync_batchnorm = false;
  plain.accumulate = 1;
  expect_same(run(2, plain), together, "a pass for each shard");
}

INSTANTIATE_TEST_SUITE_P(Trainings, ReproducibleBatchNorm,
                         ::testing::Values(train::Precision::fp32, train::Precision::fp16, train::Precision::bf16),
                         [](const auto& test) { return std::string(train::word_of(test.param)); });

}  // namespace
}  // namespace gradring::tests
