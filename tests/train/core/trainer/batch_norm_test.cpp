// SPDX-License-Identifier: Apache-2.0
// Batch normalization over ranks: synchronized, it gives what one rank gives with all samples; else rank 0's running
// statistics are those of the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "data/datasets/open_dataset.h"
#include "kernels/base/error.h"
#include "tests/train/support/batch_norm_steps.h"
#include "tests/train/support/training_run.h"

namespace gradring::tests {
namespace {

constexpr std::int64_t kGlobalBatch = TrainedSteps::kGlobalBatch;

/// Trains ranks of which rank r gets samples[r] of each step's twelve. Returns rank 0's result.
TrainedSteps train_ranks(const std::vector<std::int64_t>& samples, const RankRig::Options& options) {
  TrainedSteps of_rank_0;
  run_ranks(static_cast<int>(samples.size()), [&](comm::ProcessGroup& group) {
    TrainedSteps trained = train_batch_norm(group, samples, options);
    if (group.rank() == 0) of_rank_0 = std::move(trained);
  });
  return of_rank_0;
}

struct LayoutCase {
  std::string name;
  std::vector<std::int64_t> samples;
  RankRig::Options options;
};

void PrintTo(const LayoutCase& c, std::ostream* out) { *out << c.name; }

class SyncBatchNorm : public testing::TestWithParam<LayoutCase> {};

TEST_P(SyncBatchNorm, GivesWhatOneRankGivesWithAllSamples) {
  const TrainedSteps one = train_ranks({kGlobalBatch}, {});
  ASSERT_EQ(one.buffers.size(), 6u);
  RankRig::Options options = GetParam().options;
  options.sync_batch_norm = true;
  expect_same_steps(train_ranks(GetParam().samples, options), one);
}

/// With shards, ranks have different numbers of passes in a step; those that lack samples must gather all the same.
TEST(SyncBatchNormOfShards, TakesRanksWithFewerPasses) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const data::InMemoryDataset train_set = head_of(*digits, 29), test_set = head_of(*digits, 5);  // a short last step
  train::TrainConfig config = config_for(1, 4);
  config.model = "batch-norm.toml";
  config.model_text = kBatchNormModel.text;
  config.sync_batchnorm = true;
  config.sampler = train::Sampler::sharded;
  config.global_batch = 12;  // 3 shards over 2 ranks
  for (const std::int64_t zero : {0, 1, 2, 3}) {
    config.zero = zero;
    const TrainingRun run = train(2, config, train_set, test_set);
    EXPECT_EQ(run.rank0.steps.size(), 3u) << "stage " << zero;
  }
}

const nn::Checkpointing kRecomputed{.kind = nn::Checkpointing::Kind::segments, .segments = 3};

INSTANTIATE_TEST_SUITE_P(Layouts, SyncBatchNorm,
                         testing::Values(LayoutCase{"OneRank", {12}, {}}, LayoutCase{"TwoRanks", {6, 6}, {}},
                                         LayoutCase{"Uneven", {1, 7, 0, 4}, {}}, LayoutCase{"OnlyTheLast", {0, 12}, {}},
                                         LayoutCase{"Recomputed", {5, 7}, {.checkpointing = kRecomputed}},
                                         LayoutCase{"Zero3", {5, 7}, {.zero = 3}},
                                         LayoutCase{"InPlace", {5, 7, 0}, {.overlap = false}}),
                         [](const auto& test) { return test.param.name; });

/// Ranks compute the same running statistics, so a difference is an error; without --sync-batchnorm rank 0's count.
TEST(SynchronizedBuffers, AreCompared) {
  for (const bool synchronized : {true, false})
    run_ranks(2, [&](comm::ProcessGroup& group) {
      const auto dataset = golden_images();
      RankRig rig(group, *dataset, {.model = kBatchNormModel, .sync_batch_norm = synchronized});
      rig.step(group.rank() == 0 ? std::vector<std::int64_t>{0, 1, 2} : std::vector<std::int64_t>{7, 8, 9}, 6);
      const auto check = [&] {
        train::check_replicas(group, rig.replica().hash(Deadline::after(std::chrono::minutes(1))), "weights");
      };
      EXPECT_NO_THROW(check());
      float* const buffers = rig.replica().whole_weights().view.buffers;
      if (group.rank() == 1) buffers[0] += 1;
      if (synchronized)
        EXPECT_THROW(check(), train::ReplicaError);
      else
        EXPECT_NO_THROW(check());
    });
}

TEST(LocalBatchNorm, HasTheRunningStatisticsOfRank0) {
  // Rank 0 alone, on its samples, moves them in the first step as it does beside another rank.
  run_ranks(2, [&](comm::ProcessGroup& group) {
    const auto dataset = golden_images();
    RankRig rig(group, *dataset, {.model = kBatchNormModel});
    rig.step(group.rank() == 0 ? std::vector<std::int64_t>{0, 1, 2} : std::vector<std::int64_t>{7, 8, 9}, 6);
    const auto before = running_statistics(rig.replica());
    const float* const buffers = rig.replica().whole_weights().view.buffers;  // as an evaluation reads them
    const std::size_t elements = nn::Program::buffer_layout(rig.replica().model()).elements();
    const std::string mine = testing::PrintToString(std::vector<float>(buffers, buffers + elements));
    EXPECT_EQ(group.broadcast_on_host(mine, 0), mine);
    if (group.rank() == 0) {
      EXPECT_EQ(running_statistics(rig.replica()), before);
    }
  });
}

/// Between them a training changes weights and running statistics, which an evaluation computes with as one convolution.
TEST(FoldedBatchNorm, IsFoldedAnewInEachEvaluation) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const data::InMemoryDataset train_set = head_of(*digits, 24), test_set = head_of(*digits, 16);
  train::TrainConfig config = config_for(0, 8);
  config.model = "folded.toml";
  config.model_text = R"(layers = [
    { conv2d = "conv", out = 6, kernel = 3, stride = 2, bias = false }, { batch_norm2d = "bn", momentum = 0.5 },
    { relu = "relu" }, { global_avg_pool2d = "pool" }, { flatten = "flatten" }, { linear = "fc", out = "classes" }])";
  config.learning_rate = 0.05;
  config.steps = 3;
  config.eval_every = config.save_every_steps = 1;
  config.keep_last = 0;
  for (const train::Precision precision : {train::Precision::fp32, train::Precision::bf16}) {
    config.precision = precision;
    config.steps = 3;
    const TrainingRun run = train(1, config, train_set, test_set);
    ASSERT_GE(run.rank0.evals.size(), 3u);
    for (const train::EvalRecord& eval : run.rank0.evals) {
      config.steps = eval.step;
      const TrainingRun fresh = train(1, config, train_set, test_set, [&](train::Trainer& trainer, int) {
        trainer.resume({.checkpoint = run.checkpoints.of_step(eval.step), .from = "step"});
      });
      EXPECT_EQ(fresh.summaries.front().loss, eval.loss) << "step " << eval.step;
    }
    EXPECT_NE(run.rank0.evals[0].loss, run.rank0.evals[1].loss);
    EXPECT_NE(run.rank0.evals[1].loss, run.rank0.evals[2].loss);
  }
}

TEST(LocalBatchNorm, ExcludesReproducibleRunsAndSplitBatches) {
  run_ranks(1, [&](comm::ProcessGroup& group) {
    const auto dataset = golden_images();
    EXPECT_THROW(RankRig(group, *dataset, {.model = kBatchNormModel, .devices = 2}), InvalidArgument);
  });
}

}  // namespace
}  // namespace gradring::tests
