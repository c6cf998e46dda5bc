// SPDX-License-Identifier: Apache-2.0
// Batch normalization over ranks: synchronized, it gives what one rank gives with all samples; else rank 0's running
// statistics are those of the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <ostream>

#include "data/datasets/open_dataset.h"
#include "kernels/base/error.h"
#include "tests/nn/support/program_rig.h"
#include "tests/train/support/rank_rig.h"
#include "tests/train/support/training_run.h"

namespace gradring::tests {
namespace {

constexpr int kSteps = 10;
constexpr std::int64_t kGlobalBatch = 12;

const nn::ModelText kModel("batch-norm", R"(
layers = [
  { conv2d = "conv1", out = 6, kernel = 3, stride = 2, bias = false },
  { batch_norm2d = "bn1" },
  { relu = "relu1" },
  { conv2d = "conv2", out = 6, kernel = 3, padding = 1, bias = false },
  { batch_norm2d = "bn2" },
  { add = "sum", inputs = ["bn2", "relu1"] },
  { relu = "relu2" },
  { batch_norm2d = "bn3", momentum = 0.5 },
  { global_avg_pool2d = "pool" },
  { flatten = "flatten" },
  { linear = "fc", out = "classes" },
]
)");

/// What ten steps leave.
struct TrainedRanks {
  std::vector<double> losses;
  std::vector<std::vector<float>> weights;
  std::vector<std::vector<float>> buffers;
};

std::vector<std::vector<float>> buffers_of(train::Replica& replica) {
  const auto state = replica.save(Deadline::after(std::chrono::minutes(1)));
  std::vector<std::vector<float>> buffers;
  for (const train::TensorRecord& tensor : state.model)
    if (tensor.name.find("running") != tensor.name.npos) {
      const auto values = train::values_of(tensor).value();
      buffers.emplace_back(values.begin(), values.end());
    }
  return buffers;
}

/// Trains ranks of which rank r gets samples[r] of each step's twelve.
TrainedRanks train_ranks(const std::vector<std::int64_t>& samples, RankRig::Options options) {
  options.model = kModel;
  options.optimizer = {.kind = train::OptimizerKind::sgd};
  options.learning_rates.assign(kSteps, 0.01f);
  options.max_batch = options.accumulates ? 3 : kGlobalBatch;
  TrainedRanks outcome;
  run_ranks(static_cast<int>(samples.size()), [&](comm::ProcessGroup& group) {
    const auto dataset = golden_images();
    RankRig rig(group, *dataset, options);
    const auto rank = static_cast<std::size_t>(group.rank());
    const std::int64_t first = std::accumulate(samples.begin(), samples.begin() + group.rank(), std::int64_t{0});
    std::vector<double> losses;
    for (int step = 0; step < kSteps; ++step) {
      std::vector<std::int64_t> indices(static_cast<std::size_t>(samples[rank]));
      std::iota(indices.begin(), indices.end(), step * kGlobalBatch + first);
      losses.push_back(rig.step(indices, kGlobalBatch).loss);
    }
    auto weights = rig.weights();
    auto buffers = buffers_of(rig.replica());
    if (rank == 0) outcome = {losses, std::move(weights), std::move(buffers)};
  });
  return outcome;
}

void expect_close(const std::vector<std::vector<float>>& actual, const std::vector<std::vector<float>>& expected,
                  double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_LT(relative_error(actual[i], expected[i]), tolerance) << i;
}

struct LayoutCase {
  std::string name;
  std::vector<std::int64_t> samples;
  RankRig::Options options;
};

void PrintTo(const LayoutCase& c, std::ostream* out) { *out << c.name; }

class SyncBatchNorm : public testing::TestWithParam<LayoutCase> {};

TEST_P(SyncBatchNorm, GivesWhatOneRankGivesWithAllSamples) {
  const TrainedRanks one = train_ranks({kGlobalBatch}, {});
  RankRig::Options options = GetParam().options;
  options.sync_batch_norm = true;
  const TrainedRanks ranks = train_ranks(GetParam().samples, options);
  for (std::size_t step = 0; step < kSteps; ++step)
    EXPECT_NEAR(ranks.losses[step], one.losses[step], 1e-6 * one.losses[step]) << step;
  expect_close(ranks.weights, one.weights, 1e-5);
  ASSERT_EQ(one.buffers.size(), 6u);
  expect_close(ranks.buffers, one.buffers, 1e-5);
}

/// With shards, ranks have different numbers of passes in a step; those that lack samples must gather all the same.
TEST(SyncBatchNormOfShards, TakesRanksWithFewerPasses) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const data::InMemoryDataset train_set = head_of(*digits, 29), test_set = head_of(*digits, 5);  // a short last step
  train::TrainConfig config = config_for(1, 4);
  config.model = "batch-norm.toml";
  config.model_text = kModel.text;
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
      RankRig rig(group, *dataset, {.model = kModel, .sync_batch_norm = synchronized});
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
    RankRig rig(group, *dataset, {.model = kModel});
    rig.step(group.rank() == 0 ? std::vector<std::int64_t>{0, 1, 2} : std::vector<std::int64_t>{7, 8, 9}, 6);
    const auto before = buffers_of(rig.replica());
    const float* const buffers = rig.replica().whole_weights().view.buffers;  // as an evaluation reads them
    const std::size_t elements = nn::Program::buffer_layout(rig.replica().model()).elements();
    const std::string mine = testing::PrintToString(std::vector<float>(buffers, buffers + elements));
    EXPECT_EQ(group.broadcast_on_host(mine, 0), mine);
    if (group.rank() == 0) {
      EXPECT_EQ(buffers_of(rig.replica()), before);
    }
  });
}

TEST(LocalBatchNorm, ExcludesReproducibleRunsAndSplitBatches) {
  run_ranks(1, [&](comm::ProcessGroup& group) {
    const auto dataset = golden_images();
    EXPECT_THROW(RankRig(group, *dataset, {.model = kModel, .devices = 2}), InvalidArgument);
  });
}

}  // namespace
}  // namespace gradring::tests
