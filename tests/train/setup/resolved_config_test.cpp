// SPDX-License-Identifier: Apache-2.0
#include "train/setup/resolved_config.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "train/config/resolve.h"
#include "train/trainer/step_sizes.h"

namespace gradring::train {
namespace {

class ResolvedConfigTest : public ::testing::Test {
 protected:
  /// On the CPU, with 3 threads a rank.
  static TrainConfig resolved(const TrainConfig& config, int ranks, int ranks_here) {
    return resolved_config(config, make_compute({.device = "cpu", .threads = 3}),
                           {.world_size = ranks, .local_world_size = ranks_here});
  }
  static TrainConfig resolved(const TrainConfig& config, int ranks = 1) { return resolved(config, ranks, ranks); }
};

TEST_F(ResolvedConfigTest, NamesWhatAutoAndZeroStandFor) {
  const TrainConfig config = resolved({}, 2);
  EXPECT_EQ(config.device, "cpu");
  EXPECT_EQ(config.backend, "cpu");
  EXPECT_EQ(config.precision, "fp32");
  EXPECT_EQ(config.resident, "off");
  EXPECT_EQ(config.sampler, "distributed");
  EXPECT_EQ(config.threads, 3);
  EXPECT_EQ(config.global_batch, 2 * 64);
  EXPECT_EQ(config.comm, "shm");
  EXPECT_EQ(config.allreduce, "direct");
}

TEST_F(ResolvedConfigTest, KeepsWhatWasGiven) {
  const TrainConfig given{.global_batch = 96,
                          .sampler = "distributed",
                          .on_nan = "rollback",
                          .precision = "bf16",
                          .device = "cpu",
                          .backend = "cpu",
                          .resident = "on",
                          .comm = "tcp",
                          .allreduce = "ring"};
  TrainConfig expected = given;
  expected.threads = 3;
  EXPECT_EQ(to_toml(resolved(given, 2)), to_toml(expected));
}

TEST_F(ResolvedConfigTest, CountsAccumulatedBatchesInTheGlobalBatch) {
  const TrainConfig given{.batch_size = 8, .accumulate = 4};
  const TrainConfig config = resolved(given, 3);
  EXPECT_EQ(config.global_batch, 8 * 4 * 3);
  EXPECT_EQ(config.accumulate, 1);
  EXPECT_EQ(step_sizes(config, 3).of_all, step_sizes(given, 3).of_all);
  EXPECT_EQ(step_sizes(config, 3).pass, step_sizes(given, 3).pass);
}

TEST_F(ResolvedConfigTest, NamesShardsWhereSamplesAreDealtByThem) {
  const TrainConfig config = resolved({.batch_size = 8, .reproducible = true}, 2);
  EXPECT_EQ(config.sampler, "sharded");
  EXPECT_EQ(config.shard_size, 8);
}

TEST_F(ResolvedConfigTest, JoinsNodesByTcpAndShardsByTheRing) {
  EXPECT_EQ(resolved({}, 4, 2).comm, "tcp");
  EXPECT_EQ(resolved({}, 4, 2).allreduce, "ring");
  EXPECT_EQ(resolved({.zero = 2}, 4).allreduce, "ring");
}

TEST_F(ResolvedConfigTest, NamesThePolicyForGradientsThatAreNotFiniteWhereOneWordSaysIt) {
  EXPECT_EQ(resolved({.precision = "fp16"}).on_nan, "skip");
  EXPECT_EQ(resolved({.clip_norm = 1}).on_nan, "halt");
  EXPECT_EQ(resolved({}).on_nan, "auto");
}

/// Whatever a run is asked to do, its config.resolved.toml can be given to --config, and comes to the same once more.
TEST_F(ResolvedConfigTest, ComesBackThroughConfig) {
  const TrainConfig configs[] = {{},
                                 {.accumulate = 3},
                                 {.global_batch = 96},
                                 {.sampler = "sharded", .shard_size = 16},
                                 {.precision = "fp16", .wire_dtype = "fp16"},
                                 {.reproducible = true},
                                 {.zero = 3, .sync_every_pass = true},
                                 {.comm = "tcp"},
                                 {.allreduce = "direct"},
                                 {.resume = "auto", .run_dir = "run"},
                                 {.resume = "runs/a/checkpoints/step-3"}};
  for (const TrainConfig& config : configs)
    for (const int ranks : {1, 2}) {
      const std::string text = to_resolved_toml(resolved(config, ranks));
      SCOPED_TRACE(text);
      const tests::TempFolder folder;
      const auto file = folder.write("F.toml", tests::Bytes(text.begin(), text.end()));
      const TrainConfig again = resolve({}, {}, file.string()).config;
      EXPECT_EQ(to_resolved_toml(again), text);
      EXPECT_EQ(to_resolved_toml(resolved(again, ranks)), text);
      EXPECT_EQ(again.resume, "none");
    }
}

}  // namespace
}  // namespace gradring::train
