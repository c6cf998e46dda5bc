// SPDX-License-Identifier: Apache-2.0
// One and the same training, bit for bit, however its samples are dealt to ranks.
#include <gtest/gtest.h>

#include <algorithm>

#include "data/datasets/open_dataset.h"
#include "tests/support/sanitizer.h"
#include "tests/train/support/training_run.h"

namespace gradring::tests {
namespace {

struct Precision {
  const char* name;
  const char* optimizer;
};

class Reproducible : public ::testing::TestWithParam<Precision> {
 protected:
  static train::TrainConfig config() {
    train::TrainConfig config = config_for(kThreadSanitizer ? 1 : 2, 64);
    config.reproducible = true;
    config.global_batch = 24;
    config.shard_size = 4;
    config.precision = train::parse_choice<train::Precision>("precision", GetParam().name);
    config.loss_scale = kThreadSanitizer ? 0x1p26 : 0x1p29;  // the first steps overflow, by one layout as by another
    config.optimizer = {.kind = train::parse_choice<train::OptimizerKind>("optimizer", GetParam().optimizer)};
    if (config.optimizer.kind == train::OptimizerKind::sgd) config.optimizer.momentum = 0.9;
    return config;
  }
  TrainingRun run(int world, const train::TrainConfig& config) const {
    return train(world, config, train_set_, test_set_);
  }
  static void expect_same(const TrainingRun& actual, const TrainingRun& expected, const std::string& layout) {
    EXPECT_EQ(actual.summaries.front().parameters_sha256, expected.summaries.front().parameters_sha256) << layout;
    ASSERT_LE(actual.rank0.steps.size(), expected.rank0.steps.size());
    const std::size_t before = expected.rank0.steps.size() - actual.rank0.steps.size();
    for (std::size_t i = 0; i < actual.rank0.steps.size(); ++i) {
      EXPECT_EQ(actual.rank0.steps[i].loss, expected.rank0.steps[before + i].loss) << layout << ", step " << i;
      EXPECT_EQ(actual.rank0.steps[i].skipped, expected.rank0.steps[before + i].skipped) << layout;
    }
  }

  std::unique_ptr<data::Dataset> digits_ = data::open_dataset("digits", data::Split::train, "");
  data::InMemoryDataset train_set_ = head_of(*digits_, 133);  // a short step, and a short shard in it
  data::InMemoryDataset test_set_ = head_of(*digits_, 5);
};

/// Under ThreadSanitizer, where each training takes a quarter of a minute, three ranks stand for all.
std::vector<int> worlds(const std::vector<int>& all) { return kThreadSanitizer ? std::vector{3} : all; }

TEST_P(Reproducible, ByAnyNumberOfRanksBucketsAndAlgorithms) {
  const TrainingRun one = run(1, config());
  ASSERT_GT(one.rank0.steps.size(), 5u);
  if (std::string(GetParam().name) == "fp16") {
    EXPECT_TRUE(one.rank0.steps.front().skipped);
  }
  EXPECT_FALSE(std::ranges::all_of(one.rank0.steps, &train::StepRecord::skipped)) << "weights must change";
  if (!kThreadSanitizer) {
    EXPECT_FALSE(one.rank0.steps.back().skipped);
    EXPECT_LT(one.rank0.steps.back().loss, one.rank0.steps.front().loss);
  }
  for (const int world : worlds({2, 3, 4, 5, 7}))
    expect_same(run(world, config()), one, std::to_string(world) + " ranks");

  train::TrainConfig other = config();
  other.clip_norm = 0.05;  // every step is clipped
  const TrainingRun clipped = run(1, other);
  EXPECT_NE(clipped.summaries.front().parameters_sha256, one.summaries.front().parameters_sha256);
  for (const int world : worlds({2, 3, 7}))
    expect_same(run(world, other), clipped, std::to_string(world) + " ranks, clipped");
  other.clip_norm = 0;
  other.buckets = {.first_bytes = 1, .rest_bytes = 1};
  expect_same(run(3, other), one, "a bucket a tensor");
  other.allreduce = train::AllReduce::ring;
  expect_same(run(4, other), one, "by the ring");
  other.overlap = false;
  other.checkpointing = {.kind = nn::Checkpointing::Kind::segments, .segments = 2};
  expect_same(run(2, other), one, "in place, activations computed twice");
}

TEST_P(Reproducible, WhateverRanksShareOut) {
  const TrainingRun one = run(1, config());
  train::TrainConfig clipped = config();
  clipped.clip_norm = 0.05;
  const TrainingRun one_clipped = run(1, clipped);
  for (const int zero : {1, 2, 3})
    for (const int world : worlds({2, 3, 7})) {  // of 7 some have no samples in a step
      const std::string layout = "ZeRO " + std::to_string(zero) + " by " + std::to_string(world) + " ranks";
      train::TrainConfig shared = config();
      shared.zero = zero;
      expect_same(run(world, shared), one, layout);
      shared.buckets = {.first_bytes = 1, .rest_bytes = 40'000};
      shared.checkpointing = {.kind = nn::Checkpointing::Kind::segments, .segments = 2};
      expect_same(run(world, shared), one, layout + ", small buckets, activations computed twice");
      shared = clipped;
      shared.zero = zero;
      expect_same(run(world, shared), one_clipped, layout + ", clipped");
    }
}

TEST_P(Reproducible, FromACheckpointOfRanksThatShareOutToOthers) {
  train::TrainConfig saving = config();
  saving.save_every_steps = 1;
  saving.zero = 2;
  const TrainingRun whole = run(4, saving);
  for (const std::int64_t step : {2, 5})
    for (const int world : worlds({1, 3}))
      for (const int zero : {0, 3}) {
        train::TrainConfig going_on = saving;
        going_on.zero = zero;
        const TrainingRun rest = train(world, going_on, train_set_, test_set_, [&](train::Trainer& trainer, int rank) {
          trainer.resume(
              {.checkpoint = rank == 0 ? whole.checkpoints.of_step(step) : train::Checkpoint(), .from = "step"});
        });
        expect_same(rest, whole, std::to_string(world) + " ranks, ZeRO " + std::to_string(zero));
      }
}

TEST_P(Reproducible, ByAnyNumberOfRanksThatAugment) {
  train::TrainConfig augmenting = config();
  augmenting.augment = data::parse_augmentation("crop=2,flip,mixup=0.4,cutmix=1,cutout=6");
  const TrainingRun one = run(1, augmenting);
  EXPECT_NE(one.summaries.front().parameters_sha256, run(1, config()).summaries.front().parameters_sha256);
  for (const int world : worlds({2, 3, 7})) {
    augmenting.loader_threads = world;
    expect_same(run(world, augmenting), one, std::to_string(world) + " ranks and loader threads");
  }
}

TEST_P(Reproducible, IsNotWhatFloatsGive) {
  train::TrainConfig floats = config();
  floats.reproducible = false;
  floats.sampler = train::Sampler::sharded;
  EXPECT_NE(run(2, floats).summaries.front().parameters_sha256, run(3, floats).summaries.front().parameters_sha256)
      << "else this file's other tests show nothing";
}

TEST_P(Reproducible, OverAResumeByOtherRanks) {
  train::TrainConfig saving = config();
  saving.save_every_steps = 1;
  const TrainingRun whole = run(4, saving);
  const std::vector<std::int64_t> all = {1, 4, 7}, of_one_epoch = {1, 4};
  for (const std::int64_t step : kThreadSanitizer ? of_one_epoch : all)
    for (const int world : worlds({1, 3})) {
      const TrainingRun rest = train(world, saving, train_set_, test_set_, [&](train::Trainer& trainer, int rank) {
        trainer.resume(
            {.checkpoint = rank == 0 ? whole.checkpoints.of_step(step) : train::Checkpoint(), .from = "step"});
      });
      expect_same(rest, whole, std::to_string(world) + " ranks from step " + std::to_string(step));
    }
}

INSTANTIATE_TEST_SUITE_P(Trainings, Reproducible,
                         ::testing::Values(Precision{"fp32", "adam"}, Precision{"fp32", "sgd"},
                                           Precision{"fp16", "adam"}),
                         [](const auto& test) { return std::string(test.param.name) + "_" + test.param.optimizer; });

}  // namespace
}  // namespace gradring::tests
