// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/run_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/temp_folder.h"
#include "train/core/config/resolve.h"
#include "train/core/trainer/from_config.h"

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
  EXPECT_EQ(config.backend, BackendKind::cpu);
  EXPECT_EQ(config.precision, Precision::fp32);
  EXPECT_EQ(config.resident, Resident::off);
  EXPECT_EQ(config.sampler, Sampler::distributed);
  EXPECT_EQ(config.threads, 3);
  EXPECT_EQ(config.global_batch, 2 * 64);
  EXPECT_EQ(config.comm, TransportKind::shm);
  EXPECT_EQ(config.allreduce, AllReduce::direct);
}

TEST_F(ResolvedConfigTest, KeepsWhatWasGiven) {
  const TrainConfig given{.global_batch = 96,
                          .sampler = Sampler::distributed,
                          .on_nan = OnNan::roll_back,
                          .precision = Precision::bf16,
                          .device = "cpu",
                          .backend = BackendKind::cpu,
                          .resident = Resident::on,
                          .comm = TransportKind::tcp,
                          .allreduce = AllReduce::ring};
  TrainConfig expected = given;
  expected.threads = 3;
  EXPECT_EQ(to_toml(resolved(given, 2)), to_toml(expected));
}

TEST_F(ResolvedConfigTest, CountsAccumulatedBatchesInTheGlobalBatch) {
  const TrainConfig given{.batch_size = 8, .accumulate = 4};
  const TrainConfig config = resolved(given, 3);
  EXPECT_EQ(config.global_batch, 8 * 4 * 3);
  EXPECT_EQ(config.accumulate, 1);
  EXPECT_EQ(step_sizes(config, 3).global, step_sizes(given, 3).global);
  EXPECT_EQ(step_sizes(config, 3).pass, step_sizes(given, 3).pass);
}

TEST_F(ResolvedConfigTest, NamesShardsWhereSamplesAreDealtByThem) {
  const TrainConfig config = resolved({.batch_size = 8, .reproducible = true}, 2);
  EXPECT_EQ(config.sampler, Sampler::sharded);
  EXPECT_EQ(config.shard_size, 8);
}

TEST_F(ResolvedConfigTest, JoinsNodesByTcpAndShardsByTheRing) {
  EXPECT_EQ(resolved({}, 4, 2).comm, TransportKind::tcp);
  EXPECT_EQ(resolved({}, 4, 2).allreduce, AllReduce::ring);
  EXPECT_EQ(resolved({.zero = 2}, 4).allreduce, AllReduce::ring);
}

TEST_F(ResolvedConfigTest, NamesThePolicyForGradientsThatAreNotFinite) {
  EXPECT_EQ(resolved({.precision = Precision::fp16}).on_nan, OnNan::skip);
  EXPECT_EQ(resolved({}).on_nan, OnNan::halt);
}

/// Whatever a run is asked to do, its config.resolved.toml can be given to --config, and comes to the same once more.
TEST_F(ResolvedConfigTest, ComesBackThroughConfig) {
  const TrainConfig configs[] = {
      {},
      {.accumulate = 3},
      {.global_batch = 96},
      {.sampler = Sampler::sharded, .shard_size = 16},
      {.precision = Precision::fp16, .wire_dtype = Precision::fp16},
      {.reproducible = true},
      {.accumulate = 2, .global_batch = 96, .shard_size = 8, .reproducible = true, .sync_batchnorm = true},
      {.zero = 3, .sync_every_pass = true},
      {.comm = TransportKind::tcp},
      {.allreduce = AllReduce::direct},
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

/// A saved config can leave --reproducible, with the micro-batches that it had.
TEST_F(ResolvedConfigTest, ComesBackWithoutReproducible) {
  const TrainConfig configs[] = {
      {.reproducible = true},
      {.global_batch = 96, .shard_size = 8, .reproducible = true},
      {.accumulate = 2, .global_batch = 96, .shard_size = 8, .reproducible = true, .sync_batchnorm = true}};
  for (const TrainConfig& config : configs) {
    const std::string text = to_resolved_toml(resolved(config, 2));
    SCOPED_TRACE(text);
    const tests::TempFolder folder;
    const auto file = folder.write("F.toml", tests::Bytes(text.begin(), text.end()));
    const TrainConfig left = resolve({{"reproducible", "false"}}, {}, file.string()).config;
    EXPECT_FALSE(left.reproducible);
    const StepSizes before = step_sizes(config, 2), now = step_sizes(left, 2);
    EXPECT_EQ(now.global, before.global);
    EXPECT_EQ(now.micro_batch, before.micro_batch);
    EXPECT_EQ(now.pass, before.pass);
  }
}

Checkpoint with_settings(const nlohmann::ordered_json& settings) {
  Checkpoint checkpoint;
  (*checkpoint.about)["settings"] = settings;
  return checkpoint;
}

TEST(SavedSettings, AreThoseOfTheRun) {
  TrainConfig config;
  config.dataset = "cifar10";
  config.data_dir = "a \"strange\" folder";
  const Checkpoint checkpoint = with_settings(to_toml(config));
  EXPECT_EQ(saved_setting(checkpoint, "dataset"), "cifar10");
  EXPECT_EQ(saved_setting(checkpoint, "model"), "convnet");
  EXPECT_EQ(saved_setting(checkpoint, "data-dir"), config.data_dir);
  EXPECT_EQ(saved_setting(checkpoint, "image-size"), "64");
}

TEST(SavedSettings, AreThereAsAWhole) {
  EXPECT_EQ(saved_settings(with_settings("seed = 3")), "seed = 3");
  EXPECT_EQ(saved_settings({}), std::nullopt);
  EXPECT_EQ(saved_settings(with_settings(7)), std::nullopt);
}

TEST(SavedSettings, AreEmptyWhereNothingIsSaid) {
  EXPECT_EQ(saved_setting({}, "dataset"), "");
  EXPECT_EQ(saved_setting(with_settings("seed = 3"), "dataset"), "");
  EXPECT_EQ(saved_setting(with_settings("dataset = [3]"), "dataset"), "");
  EXPECT_EQ(saved_setting(with_settings("no TOML at all"), "dataset"), "");
  EXPECT_EQ(saved_setting(with_settings(7), "dataset"), "");
}

TEST(SavedSettings, AreEmptyWhereTheTextWouldExhaustTheStack) {
  std::string deep = "dataset = \"digits\"\na";
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  EXPECT_EQ(saved_setting(with_settings(deep + " = 1"), "dataset"), "");
}

using ::testing::IsEmpty;

TEST(StepChange, IsToldWhereTheStepsOfARunGetAnotherSize) {
  Checkpoint checkpoint{.step = 3};
  checkpoint.about = JsonValue::parse(R"({"samples_of_step": 32})");
  TrainConfig config{.batch_size = 16};
  EXPECT_THAT(step_change(checkpoint, config, 2), IsEmpty());
  EXPECT_EQ(step_change(checkpoint, config, 1),
            "a step has 16 samples on 1 rank, but had 32 when the checkpoint was saved: --global-batch 32 keeps that "
            "for any number of ranks");
  EXPECT_THAT(step_change(checkpoint, config, 3), testing::HasSubstr("48 samples on 3 ranks,"));
  config.global_batch = 32;
  EXPECT_THAT(step_change(checkpoint, config, 1), IsEmpty());
}

TEST(StepChange, IsNotGuessed) {
  EXPECT_THAT(step_change({.step = 3}, {}, 1), IsEmpty());
  Checkpoint odd{.step = 3};
  odd.about = JsonValue::parse(R"({"samples_of_step": "many"})");
  EXPECT_THAT(step_change(odd, {}, 1), IsEmpty());
}

}  // namespace
}  // namespace gradring::train
