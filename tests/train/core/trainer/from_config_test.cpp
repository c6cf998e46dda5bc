// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/from_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "kernels/host/host_device.h"
#include "tests/data/support/message_of.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using tests::message_of;

TEST(StepSizes, AreTheBatchesOfAllRanks) {
  TrainConfig config;
  config.batch_size = 6;
  config.accumulate = 2;
  const StepSizes sizes = step_sizes(config, 3);
  EXPECT_FALSE(sizes.sharded);
  EXPECT_EQ(sizes.global, 36);
  EXPECT_EQ(sizes.pass, 6);
  EXPECT_EQ(make_steps(sizes, 100, 0, 1, 3)->most_of_rank(), 12);
}

TEST(StepSizes, OfAGlobalBatchDoNotDependOnTheRanks) {
  TrainConfig config;
  config.global_batch = 120;
  for (int ranks : {1, 2, 3, 4, 5}) {
    EXPECT_EQ(step_sizes(config, ranks).global, 120);
    EXPECT_EQ(make_steps(step_sizes(config, ranks), 1000, 0, 0, ranks)->most_of_rank(), 120 / ranks);
  }
  EXPECT_THAT(message_of<UsageError>([&] { step_sizes(config, 7); }),
              AllOf(HasSubstr("--global-batch is 120"), HasSubstr("7 ranks"), HasSubstr("--sampler sharded")));
}

TEST(StepSizes, OfShardsAreForAnyNumberOfRanks) {
  TrainConfig config;
  config.global_batch = 120;
  config.shard_size = 8;
  config.sampler = Sampler::sharded;
  for (int ranks : {1, 7, 20}) {
    EXPECT_TRUE(step_sizes(config, ranks).sharded);
    EXPECT_EQ(step_sizes(config, ranks).pass, 8);
  }
  config.shard_size = 0;
  EXPECT_THAT(message_of<UsageError>([&] { step_sizes(config, 1); }),
              AllOf(HasSubstr("a step has 120 samples, expected a multiple of the 64 samples of a shard"),
                    HasSubstr("--shard-size")));
}

TEST(StepSizes, OfShardsThatAreNormalizedTogetherAreMicroBatchesOfAllRanks) {
  TrainConfig config;
  config.global_batch = 96;
  config.accumulate = 2;
  config.shard_size = 8;
  config.sync_batchnorm = true;
  EXPECT_THAT(message_of<UsageError>([&] { validate(config); }),
              AllOf(HasSubstr("--global-batch 96 and --accumulate 2"), HasSubstr("set --accumulate 1"),
                    HasSubstr("with --sampler sharded, --accumulate divides the global batch")));
  config.sampler = Sampler::sharded;
  for (const bool reproducible : {false, true}) {
    config.reproducible = reproducible;
    EXPECT_NO_THROW(validate(config));
    EXPECT_EQ(step_sizes(config, 1).micro_batch, 48);
    EXPECT_EQ(step_sizes(config, 1).pass, 48);
    EXPECT_EQ(step_sizes(config, 4).pass, 16) << "6 shards over 4 ranks";
  }
  config.reproducible = config.sync_batchnorm = false;
  config.accumulate = 1;
  config.sampler = {};
  EXPECT_THAT(message_of<UsageError>([&] { validate(config); }),
              AllOf(HasSubstr("--shard-size 8 has no effect without --sampler sharded"), HasSubstr("--shard-size 0")));
}

TEST(StepSizes, AreShardedWhereRunsMustBeReproducible) {
  TrainConfig config;
  config.reproducible = true;
  EXPECT_TRUE(step_sizes(config, 2).sharded);
}

class GroupWarmup : public ::testing::Test {
 protected:
  /// Epochs of 4 steps.
  static std::string refusal(const TrainConfig& config) {
    const StepSizes sizes = step_sizes(config, 1);
    const auto sampler = make_steps(sizes, 4 * sizes.global, 0, 0, 1);
    const kernels::HostDevice device;
    try {
      replica_spec(config, device, sizes, *sampler);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  }
};

TEST_F(GroupWarmup, MustFitTheEpochsOfItsParameters) {
  TrainConfig config;
  config.schedule.warmup_steps = 3;
  config.optimizer.groups = {{.pattern = "*.bias", .epochs = 0.5}};
  EXPECT_THAT(refusal(config),
              AllOf(HasSubstr("--warmup-steps 3 is more than the 2 steps of parameters with epochs=0.5"),
                    HasSubstr("raise epochs")));
  config.optimizer.groups.front().frozen = true;
  EXPECT_EQ(refusal(config), "") << "the rate of frozen parameters has no effect";
  config.optimizer.groups = {{.pattern = "*.bias", .epochs = 0.75}};
  EXPECT_EQ(refusal(config), "");
  config.schedule.warmup_steps = 9;
  EXPECT_THAT(refusal(config), HasSubstr("--warmup-steps 9 is more than the 8 steps of this training"));
}

/// The refusal of a training on images of 8 x 8 whose batch normalization sees one pixel of each; empty if it may begin.
std::string refusal_of_points(TrainConfig config, std::int64_t samples, int ranks) {
  config.model = "points.toml";
  config.model_text =
      "layers = [{ conv2d = 'conv1', out = 4, kernel = 3 }, { batch_norm2d = 'bn1' }, { global_avg_pool2d = 'pool' },"
      " { batch_norm2d = 'bn2' }, { flatten = 'flatten' }, { linear = 'fc', out = 'classes' }]";
  const StepSizes sizes = step_sizes(config, ranks);
  const kernels::HostDevice device;
  const ReplicaSpec spec = replica_spec(config, device, sizes, *make_steps(sizes, samples, 0, 0, ranks));
  try {
    replica_model(spec, {8, 8, 1}, 3);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

struct PointsCase {
  std::int64_t samples, batch_size;
  int ranks;
  std::string step;  ///< that has a single sample; empty: no step
  std::function<void(TrainConfig&)> change = [](TrainConfig&) {};
};

/// As PyTorch, which rejects the batch when it comes: "Expected more than 1 value per channel when training".
TEST(BatchNormOfOnePixel, NeedsTwoSamplesInEachPass) {
  const auto accumulate = [](TrainConfig& c) { c.accumulate = 2; };
  const auto together = [](TrainConfig& c) { c.sync_batchnorm = true; };
  const auto shards = [](TrainConfig& c) { c.sampler = Sampler::sharded, c.global_batch = 12; };
  const auto shards_together = [](TrainConfig& c) {
    c.sampler = Sampler::sharded, c.sync_batchnorm = true, c.global_batch = 12;
  };
  const std::vector<PointsCase> cases = {
      {12, 1, 1, "1"},
      {12, 4, 1, ""},
      {13, 4, 1, "4"},
      {13, 4, 1, "", [](TrainConfig& c) { c.epochs = 0, c.steps = 3; }},
      {13, 4, 1, "4", [](TrainConfig& c) { c.epochs = 0, c.steps = 30; }},
      {14, 4, 1, ""},
      {18, 4, 2, "3"},  // 9 of each rank
      {17, 4, 2, "3"},  // with a repeated one
      {18, 4, 2, "", together},
      {12, 1, 2, "", together},
      {13, 4, 1, "4", together},
      {17, 3, 1, "", accumulate},
      {7, 3, 1, "2", accumulate},
      {4, 3, 1, "1", accumulate},
      {21, 5, 2, "2", accumulate},  // 11 of each rank, in passes of 5 and 1
      {37, 4, 2, "4", shards},
      {38, 4, 2, "", shards},
      {41, 4, 2, "4", shards},
      {41, 4, 2, "", shards_together},
      {37, 4, 2, "4", shards_together},
  };
  for (const PointsCase& c : cases) {
    SCOPED_TRACE(::testing::Message() << c.samples << " samples by " << c.batch_size << " on " << c.ranks);
    TrainConfig config;
    config.batch_size = c.batch_size;
    c.change(config);
    const std::string refusal = refusal_of_points(config, c.samples, c.ranks);
    if (c.step.empty()) {
      EXPECT_EQ(refusal, "");
      continue;
    }
    EXPECT_THAT(refusal, AllOf(HasSubstr("batch normalization bn2 has 1 value per channel"),
                               HasSubstr("in step " + c.step + " of an epoch"), HasSubstr("another --batch-size")));
    EXPECT_EQ(refusal.find("--sync-batchnorm") == std::string::npos, config.sync_batchnorm);
  }
}

/// Frozen parameters do not change how a batch is normalized.
TEST(BatchNormOfOnePixel, NeedsThemWhereItsParametersAreFrozen) {
  TrainConfig config;
  config.batch_size = 1;
  config.optimizer.groups = {{.pattern = "bn2.*", .frozen = true}};
  EXPECT_THAT(refusal_of_points(config, 12, 1), HasSubstr("batch normalization bn2"));
}

}  // namespace
}  // namespace gradring::train
