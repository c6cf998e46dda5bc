// SPDX-License-Identifier: Apache-2.0
// Nothing in a checkpoint tells how many ranks there were, or what they shared out.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/datasets/open_dataset.h"
#include "tests/support/sanitizer.h"
#include "tests/train/support/rank_rig.h"
#include "tests/train/support/training_run.h"

namespace gradring::tests {
namespace {

Deadline in_time() { return Deadline::after(std::chrono::minutes(2)); }

struct ZeroCase {
  const char* name;
  train::Precision precision;
  train::OptimizerSpec optimizer;
};

class ZeroTraining : public testing::TestWithParam<ZeroCase> {};

TEST_P(ZeroTraining, OfFourRanksSavesAndSumsUpWhatPlainRanksDo) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const auto train_set = head_of(*digits, 57), test_set = head_of(*digits, 7);  // uneven for 4 ranks
  train::TrainConfig config = config_for(1, 3);
  config.precision = GetParam().precision;
  config.optimizer = GetParam().optimizer;
  config.loss_scale = 0x1p26;  // overflows at first
  config.clip_norm = 0.5;
  config.save_every_steps = 1;
  config.check_replicas = 2;
  config.buckets = {.first_bytes = 1, .rest_bytes = 40'000};
  const TrainingRun plain = train(4, config, train_set, test_set);
  ASSERT_GE(plain.checkpoints.all.size(), 3u);
  for (config.zero = 1; config.zero <= 3; ++config.zero) {
    SCOPED_TRACE("stage " + std::to_string(config.zero));
    const TrainingRun shared = train(4, config, train_set, test_set);
    ASSERT_EQ(shared.checkpoints.all.size(), plain.checkpoints.all.size());
    for (std::size_t i = 0; i < plain.checkpoints.all.size(); ++i) {
      const train::Checkpoint &actual = shared.checkpoints.all[i], &expected = plain.checkpoints.all[i];
      EXPECT_EQ(actual.step, expected.step);
      EXPECT_TRUE(actual.model == expected.model) << "weights after step " << expected.step;
      EXPECT_TRUE(actual.state == expected.state) << "optimizer's state after step " << expected.step;
      EXPECT_EQ((*actual.about)["step_state"], (*expected.about)["step_state"]);
    }
    EXPECT_EQ(shared.summaries.front().parameters_sha256, plain.summaries.front().parameters_sha256);
    EXPECT_EQ(shared.summaries.front().accuracy, plain.summaries.front().accuracy);
    EXPECT_EQ(shared.summaries.front().loss, plain.summaries.front().loss);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, ZeroTraining,
    testing::Values(
        ZeroCase{"Adam", train::Precision::fp32, {.kind = train::OptimizerKind::adam, .ema = 0.9}},
        ZeroCase{"Groups",
                 train::Precision::fp32,
                 {.kind = train::OptimizerKind::sgd,
                  .momentum = 0.9,
                  .ema = 0.9,
                  .groups = {{.pattern = "conv*", .kind = train::OptimizerKind::adamw, .learning_rate = 1e-3},
                             {.pattern = "fc_layers.0.*", .momentum = 0.0},
                             {.pattern = "fc_layers.2.bias", .frozen = true}}}},
        ZeroCase{"Muon",
                 train::Precision::fp32,
                 {.kind = train::OptimizerKind::muon, .momentum = 0.95, .nesterov = true, .ema = 0.9}},
        ZeroCase{"SgdMomentumFp16", train::Precision::fp16, {.kind = train::OptimizerKind::sgd, .momentum = 0.9}}),
    [](const auto& test) { return std::string(test.param.name); });

struct Layout {
  int world;
  int zero;
};

/// What `layout` saves: of its own three steps, or, given a state, as it took that over.
train::ReplicaState saved_by(const Layout& layout, const data::Dataset& dataset, const train::ReplicaState* from) {
  train::ReplicaState saved;
  run_ranks(layout.world, [&](comm::ProcessGroup& group) {
    RankRig::Options options;
    options.max_batch = 2;
    options.zero = layout.zero;
    options.precision = kernels::DType::f16;
    options.loss_scaling = {.dynamic = true, .initial = 1024, .policy = {}};
    options.buckets = {.first_bytes = 1, .rest_bytes = 40'000};
    options.seed = from ? 7 : 1;
    RankRig rig(group, dataset, options);
    const train::ReplicaState nothing{
        .model = {}, .state = {}, .step = from ? from->step : kernels::step_state::StepState()};
    if (from)
      rig.replica().load(group.rank() == 0 ? *from : nothing, "step-3", in_time());
    else
      for (int step = 0; step < 3; ++step)
        rig.step({2 * group.rank() + step, 2 * group.rank() + step + 1}, 2 * layout.world);
    train::ReplicaState mine = rig.replica().save(in_time());
    if (group.rank() == 0) saved = std::move(mine);
  });
  return saved;
}

TEST(ZeroCheckpoints, OfFourRanksAreTakenOverByAnyOthers) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const train::ReplicaState four = saved_by({.world = 4, .zero = 2}, *digits, nullptr);
  EXPECT_EQ(four.step.applied_steps, 3);
  for (const Layout& layout : {Layout{1, 0}, Layout{3, 0}, Layout{3, 1}, Layout{3, 2}, Layout{2, 3}, Layout{1, 3}}) {
    SCOPED_TRACE(std::to_string(layout.world) + " ranks, stage " + std::to_string(layout.zero));
    const train::ReplicaState taken = saved_by(layout, *digits, &four);
    EXPECT_TRUE(taken.model == four.model);
    EXPECT_TRUE(taken.state == four.state);
    EXPECT_EQ(taken.step.applied_steps, four.step.applied_steps);
    EXPECT_EQ(taken.step.loss_scale, four.step.loss_scale);
  }
}

}  // namespace
}  // namespace gradring::tests
