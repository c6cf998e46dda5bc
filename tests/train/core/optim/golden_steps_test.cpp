// SPDX-License-Identifier: Apache-2.0
// Ten steps with each optimizer against values made with PyTorch: losses, and weights at the end.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <ostream>

#include "tests/nn/support/program_rig.h"
#include "tests/support/safetensors.h"
#include "tests/support/sanitizer.h"
#include "tests/train/support/rank_rig.h"

namespace gradring::tests {
namespace {

struct StepsCase {
  std::string golden;
  train::OptimizerSpec optimizer;
  float learning_rate;
  double loss_error = 1e-4;
  double weight_error = 1e-3;
  double label_smoothing = 0;
};

train::OptimizerSpec muon(train::MuonScale scale) {
  return {
      .kind = train::OptimizerKind::muon, .momentum = 0.95, .nesterov = true, .muon_scale = scale, .weight_decay = 0.5};
}

void PrintTo(const StepsCase& c, std::ostream* out) { *out << c.golden; }

std::vector<StepsCase> steps_cases() {
  return {
      {"adam", {.kind = train::OptimizerKind::adam}, 1e-3f},
      {"adam_wd", {.kind = train::OptimizerKind::adam, .weight_decay = 1e-2}, 1e-3f},
      {"adamw", {.kind = train::OptimizerKind::adamw, .weight_decay = 1e-2}, 1e-3f},
      {"adam_betas", {.kind = train::OptimizerKind::adam, .betas = {0.7, 0.9}, .epsilon = 1e-3}, 1e-3f},
      {"sgd", {.kind = train::OptimizerKind::sgd}, 1e-2f},
      {"sgdw", {.kind = train::OptimizerKind::sgdw, .momentum = 0.9, .nesterov = true, .weight_decay = 5}, 1e-2f},
      {"sgd_momentum_wd", {.kind = train::OptimizerKind::sgd, .momentum = 0.9, .weight_decay = 5e-4}, 1e-2f},
      {"sgd_nesterov", {.kind = train::OptimizerKind::sgd, .momentum = 0.9, .nesterov = true}, 1e-2f},
      {"adamw_no_bias_decay", {.kind = train::OptimizerKind::adamw, .weight_decay = 20, .no_bias_decay = true}, 1e-3f},
      {"sgd_no_bias_decay",
       {.kind = train::OptimizerKind::sgd, .momentum = 0.9, .weight_decay = 0.5, .no_bias_decay = true},
       1e-2f},
      {"muon", muon(train::MuonScale::original), 0.02f},
      // A rounding to BF16 changes X by up to 2^-9 of its norm. Where the gradient's singular values are small, five
      // iterations multiply that by up to 3.4445^5 = 485, so the update differs there. These are about three times what
      // PyTorch's values in FP32 (golden muon) differ from those in BF16: 3e-4, and 0.033 in the first filters.
      {"muon_bf16", muon(train::MuonScale::original), 0.02f, 1e-3, 0.1},
      {"muon_match_rms", muon(train::MuonScale::match_rms_adamw), 0.002f},
      {"muon_normalize",
       {.kind = train::OptimizerKind::muon,
        .momentum = 0.6,
        .nesterov = true,
        .muon_scale = train::MuonScale::normalize,
        .muon_steps = 3,
        .groups = {{.pattern = "*.bias", .learning_rate = 0.02}, {.pattern = "fc_layers.2.*", .learning_rate = 0.02}}},
       0.05f},
      {"sgd_groups",
       {.kind = train::OptimizerKind::sgd,
        .momentum = 0.9,
        .weight_decay = 0.5,
        .groups = {{.pattern = "conv_layers.*", .learning_rate = 1e-3, .momentum = 0.5},
                   {.pattern = "*.bias", .learning_rate = 0.05, .weight_decay = 0}}},
       1e-2f},
      {.golden = "adam_label_smoothing",
       .optimizer = {.kind = train::OptimizerKind::adam},
       .learning_rate = 1e-3f,
       .label_smoothing = 0.1}};
}

class GoldenSteps : public testing::TestWithParam<std::tuple<std::string, StepsCase>> {};

TEST_P(GoldenSteps, LossesAndWeightsFollowPyTorch) {
  constexpr std::int64_t kBatch = 32;
  const auto& [backend, c] = GetParam();
  const auto golden = tests::read_golden("convnet_10steps_" + c.golden);
  const auto losses = golden.at("losses").as<double>();
  const auto dataset = golden_images();
  run_ranks(1, [&](comm::ProcessGroup& group) {
    RankRig::Options options;
    options.backend = backend;
    options.optimizer = c.optimizer;
    options.learning_rates = {c.learning_rate};
    options.label_smoothing = c.label_smoothing;
    options.max_batch = kBatch;
    RankRig rig(group, *dataset, options);
    const std::size_t steps = !kSanitizer.empty() ? 2 : losses.size();
    for (std::size_t step = 0; step < steps; ++step) {
      std::vector<std::int64_t> indices(kBatch);
      std::iota(indices.begin(), indices.end(), static_cast<std::int64_t>(step) * kBatch);
      EXPECT_NEAR(rig.step(indices, kBatch).loss, losses[step], c.loss_error) << "step " << step;
    }
    if (!kSanitizer.empty()) return;  // the stored weights are those after all steps
    const auto weights = rig.weights();
    int compared = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto stored = golden.find(rig.parameters()[i].name);
      if (stored == golden.end()) continue;
      ++compared;
      EXPECT_LT(relative_error(weights[i], stored->second.as<float>()), c.weight_error) << stored->first;
    }
    EXPECT_EQ(compared, 4);
  });
}

// The golden values are those of torch.optim.swa_utils.AveragedModel.
TEST(GoldenAverage, FollowsPyTorch) {
  constexpr std::int64_t kBatch = 32;
  const auto golden = tests::read_golden("convnet_10steps_adam_ema");
  const auto losses = golden.at("losses").as<double>();
  const auto dataset = golden_images();
  run_ranks(1, [&](comm::ProcessGroup& group) {
    RankRig::Options options;
    options.optimizer = {.kind = train::OptimizerKind::adam, .ema = 0.7};
    RankRig rig(group, *dataset, options);
    const std::size_t steps = !kSanitizer.empty() ? 2 : losses.size();
    for (std::size_t step = 0; step < steps; ++step) {
      std::vector<std::int64_t> indices(kBatch);
      std::iota(indices.begin(), indices.end(), static_cast<std::int64_t>(step) * kBatch);
      EXPECT_NEAR(rig.step(indices, kBatch).loss, losses[step], 1e-4) << "step " << step;
    }
    if (!kSanitizer.empty()) return;
    int compared = 0;
    for (const train::TensorRecord& tensor : rig.replica().save(Deadline::after(std::chrono::minutes(1))).state) {
      const std::string prefix = "ema.";
      if (!tensor.name.starts_with(prefix) || !golden.contains(tensor.name.substr(prefix.size()))) continue;
      ++compared;
      std::vector<float> values(tensor.bytes.size() / sizeof(float));
      std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
      EXPECT_LT(relative_error(values, golden.at(tensor.name.substr(prefix.size())).as<float>()), 1e-3) << tensor.name;
    }
    EXPECT_EQ(compared, 4);
  });
}

/// How far the weights move in one step of SGD, and what the step says of the gradients.
struct Moved {
  std::vector<std::vector<float>> by;
  std::vector<std::vector<float>> gradients;
  train::StepResult step;
};

Moved one_step(double clip_norm) {
  Moved moved;
  const auto dataset = golden_images();
  run_ranks(1, [&](comm::ProcessGroup& group) {
    RankRig::Options options;
    options.optimizer.kind = train::OptimizerKind::sgd;
    options.learning_rates = {1};
    options.clip_norm = clip_norm;
    RankRig rig(group, *dataset, options);
    moved.by = rig.weights();
    moved.step = rig.step({0, 1, 2, 3}, 4);
    moved.gradients = rig.gradients();
    const auto after = rig.weights();
    for (std::size_t i = 0; i < after.size(); ++i)
      for (std::size_t j = 0; j < after[i].size(); ++j) moved.by[i][j] -= after[i][j];
  });
  return moved;
}

double norm_of(const std::vector<std::vector<float>>& tensors) {
  double sum = 0;
  for (const auto& tensor : tensors)
    for (const float value : tensor) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

TEST(ClipNorm, ScalesAllGradientsAlikeAndSaysTheirNorm) {
  const Moved free = one_step(0);
  const double norm = norm_of(free.gradients);
  EXPECT_NEAR(free.step.gradient_norm, norm, 1e-4 * norm);
  const Moved loose = one_step(2 * norm), tight = one_step(norm / 4);
  EXPECT_NEAR(loose.step.gradient_norm, norm, 1e-4 * norm);
  EXPECT_EQ(loose.by, free.by);
  EXPECT_NEAR(norm_of(tight.by), norm / 4, 1e-3 * norm);
  for (std::size_t i = 0; i < tight.by.size(); ++i) {
    std::vector<float> quarter = free.by[i];
    for (float& value : quarter) value /= 4;
    EXPECT_LT(relative_error(tight.by[i], quarter), 1e-3);
  }
}

TEST(LearningRates, AreReadByTheDeviceForAppliedStepsAlone) {
  const auto dataset = golden_images();
  run_ranks(1, [&](comm::ProcessGroup& group) {
    RankRig::Options options;
    options.optimizer.kind = train::OptimizerKind::sgd;
    options.learning_rates = {0.5f, 0.25f, 0.125f};
    options.precision = kernels::DType::f16;
    options.loss_scaling = {.dynamic = true, .initial = 0x1p127f, .policy = {}};  // overflows, till it is small enough
    RankRig rig(group, *dataset, options);
    std::vector<float> applied;
    for (int step = 0; step < 200 && applied.size() < 5; ++step) {
      const train::StepResult result = rig.step({0, 1, 2, 3}, 4);
      if (step == 0) {
        EXPECT_TRUE(result.skipped);
      }
      EXPECT_EQ(result.applied_steps, static_cast<std::int64_t>(applied.size()));
      if (!result.skipped) applied.push_back(result.learning_rate);
    }
    EXPECT_EQ(applied, (std::vector<float>{0.5f, 0.25f, 0.125f, 0.125f, 0.125f}));
  });
}

INSTANTIATE_TEST_SUITE_P(Optimizers, GoldenSteps,
                         testing::Combine(testing::Values("cpu", "reference"), testing::ValuesIn(steps_cases())),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param).golden;
                         });

}  // namespace
}  // namespace gradring::tests
