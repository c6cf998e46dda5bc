// SPDX-License-Identifier: Apache-2.0
// What another value of an option changes in a reproducible training, for every option: TrainOption::changes says so.
#include "train/core/trainer/computation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/datasets/open_dataset.h"
#include "tests/data/support/message_of.h"
#include "tests/train/support/every_option.h"
#include "tests/train/support/training_run.h"
#include "train/core/config/options.h"
#include "train/options/usage_error.h"

namespace gradring::tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using train::Changes;
using train::TrainConfig;

constexpr const char* kNormalizedModel = R"(
layers = [
  { conv2d = "conv1", out = 4, kernel = 3, stride = 3, bias = false },
  { batch_norm2d = "bn1" },
  { relu = "relu1" },
  { dropout = "drop" },
  { flatten = "flatten" },
  { linear = "fc", out = "classes" },
]
)";

class Computation : public ::testing::Test {
 protected:
  /// Three steps of four samples.
  static TrainConfig base() {
    TrainConfig config = config_for(1, 64);
    config.model = "batch-norm.toml";
    config.model_text = kNormalizedModel;
    config.reproducible = config.sync_batchnorm = true;
    config.global_batch = 4;
    config.shard_size = 1;
    config.save_every_steps = 1;
    return config;
  }
  static TrainConfig with(const OneOption& option) {
    TrainConfig config = base();
    for (const auto& [name, text] : option.with) train::find_option(name)->read(config, text);
    train::find_option(option.name)->read(config, option.value);
    return config;
  }
  TrainingRun run(const TrainConfig& config, const train::Checkpoint* from = nullptr) const {
    return train(1, config, set_, set_, [&](train::Trainer& trainer, int) {
      if (from) trainer.resume({.checkpoint = *from, .from = "step-1"});
    });
  }
  static std::string hash_of(const TrainingRun& run) { return run.summaries.front().parameters_sha256; }
  static std::vector<OneOption> options_of(Changes what) {
    std::vector<OneOption> found;
    for (const OneOption& option : every_option())
      if (train::find_option(option.name)->changes == what) found.push_back(option);
    return found;
  }

  data::InMemoryDataset set_ = head_of(*data::open_dataset("digits", data::Split::train, ""), 12);
};

TEST_F(Computation, HasItsBitsWithEveryOptionThatChangesNothing) {
  const std::string expected = hash_of(run(base()));
  int compared = 0;
  for (const OneOption& option : options_of(Changes::nothing)) {
    SCOPED_TRACE(option.name);
    TrainConfig config = with(option);
    try {
      train::validate(config);
    } catch (const train::UsageError&) {
      continue;  // excluded by --reproducible
    }
    config.data_parallel = 1;
    EXPECT_EQ(hash_of(run(config)), expected);
    ++compared;
  }
  EXPECT_GE(compared, 30);
}

TEST_F(Computation, IsComparedByAResume) {
  const TrainingRun whole = run(base());
  const train::Checkpoint& saved = whole.checkpoints.of_step(1);
  EXPECT_EQ(hash_of(run(base(), &saved)), hash_of(whole));
  for (const OneOption& option : options_of(Changes::rounding)) {
    SCOPED_TRACE(option.name);
    if (option.name == "device") continue;  // a trainer's is that of its world
    const TrainConfig config = with(option);
    const train::TrainOption& row = *train::find_option(option.name);
    const std::string now = "this run has --" + option.name + (row.is_flag() ? "" : " " + option.value);
    EXPECT_THAT(message_of<train::UsageError>([&] { run(config, &saved); }),
                AllOf(HasSubstr("checkpoint step-1 was saved by a reproducible training with"), HasSubstr(now),
                      HasSubstr("or without --reproducible")));
  }
}

/// --backend cpu alone would be rejected on a GPU.
TEST_F(Computation, IsComparedWithItsDevice) {
  const TrainConfig cpu{.device = "cpu", .backend = train::BackendKind::cpu};
  const TrainConfig gpu{.device = "cuda", .backend = train::BackendKind::cuda};
  nlohmann::ordered_json about;
  about[train::kComputation] = *train::computation_of(cpu);
  EXPECT_THAT(
      message_of<train::UsageError>([&] { train::check_computation(about, train::computation_of(gpu), "step-1"); }),
      HasSubstr("resume with --device cpu --backend cpu, or without --reproducible"));
}

/// These options do change the bits, where this machine can show it.
TEST_F(Computation, DependsOnShardsMicroBatchesAndPrecision) {
  const std::string expected = hash_of(run(base()));
  for (const OneOption& option : options_of(Changes::rounding))
    if (option.name == "shard-size" || option.name == "accumulate" || option.name == "global-batch" ||
        option.name == "precision") {
      EXPECT_NE(hash_of(run(with(option))), expected) << option.name;
    }
}

TEST_F(Computation, OfShardsIsComparedWithoutBatchNormalizationToo) {
  TrainConfig config = base();
  config.model = "convnet";
  config.model_text.clear();
  config.sync_batchnorm = false;
  const TrainingRun whole = run(config);
  config.shard_size = 2;
  EXPECT_NE(hash_of(run(config)), hash_of(whole));
  const train::Checkpoint& saved = whole.checkpoints.of_step(1);
  EXPECT_THAT(message_of<train::UsageError>([&] { run(config, &saved); }), HasSubstr("resume with --shard-size 1, or"));
  config.reproducible = false;
  config.sampler = train::Sampler::sharded;
  EXPECT_EQ(run(config, &saved).rank0.steps.size(), 2u);
}

/// A checkpoint of a training without --reproducible, or of an earlier version.
TEST_F(Computation, IsUnknownOfOtherTrainings) {
  TrainConfig config = base();
  config.reproducible = false;
  config.sampler = train::Sampler::sharded;
  const TrainingRun floats = run(config);
  TrainConfig exact = base();
  exact.shard_size = 2;
  EXPECT_EQ(run(exact, &floats.checkpoints.of_step(1)).rank0.steps.size(), 2u);
}

}  // namespace
}  // namespace gradring::tests
