// SPDX-License-Identifier: Apache-2.0
// Ten steps with each optimizer against values made with PyTorch: losses, and weights at the end.
#include <gtest/gtest.h>

#include <numeric>
#include <ostream>

#include "tests/nn/support/program_rig.h"
#include "tests/support/safetensors.h"
#include "tests/support/sanitizer.h"
#include "tests/train/support/rank_rig.h"

namespace gradring::tests {
namespace {

struct Case {
  std::string golden;
  train::OptimizerSpec optimizer;
  double learning_rate;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.golden; }

std::vector<Case> cases() {
  return {{"adam", {.name = "adam"}, 1e-3},
          {"adam_wd", {.name = "adam", .weight_decay = 1e-2}, 1e-3},
          {"adamw", {.name = "adamw", .weight_decay = 1e-2}, 1e-3},
          {"sgd", {.name = "sgd"}, 1e-2},
          {"sgd_momentum_wd", {.name = "sgd", .momentum = 0.9, .weight_decay = 5e-4}, 1e-2},
          {"sgd_nesterov", {.name = "sgd", .momentum = 0.9, .nesterov = true}, 1e-2}};
}

class GoldenSteps : public testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(GoldenSteps, LossesAndWeightsFollowPyTorch) {
  constexpr std::int64_t kBatch = 32;
  const auto& [backend, c] = GetParam();
  const auto golden = tests::read_golden("convnet_10steps_" + c.golden);
  const auto losses = golden.at("losses").as<double>();
  const auto dataset = golden_images();
  run_ranks(1, [&](comm::ProcessGroup& group) {
    RankRig rig(group, *dataset,
                {.backend = backend, .optimizer = c.optimizer, .max_batch = kBatch, .learning_rate = c.learning_rate});
    const std::size_t steps = kThreadSanitizer ? 2 : losses.size();
    for (std::size_t step = 0; step < steps; ++step) {
      std::vector<std::int64_t> indices(kBatch);
      std::iota(indices.begin(), indices.end(), static_cast<std::int64_t>(step) * kBatch);
      EXPECT_NEAR(rig.step(indices, kBatch).loss, losses[step], 1e-4) << "step " << step;
    }
    if (kThreadSanitizer) return;  // the stored weights are those after all steps
    const auto weights = rig.weights();
    int compared = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto stored = golden.find(rig.parameters()[i].name);
      if (stored == golden.end()) continue;
      ++compared;
      EXPECT_LT(relative_error(weights[i], stored->second.as<float>()), 1e-3) << stored->first;
    }
    EXPECT_EQ(compared, 4);
  });
}

INSTANTIATE_TEST_SUITE_P(Optimizers, GoldenSteps,
                         testing::Combine(testing::Values("cpu", "reference"), testing::ValuesIn(cases())),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param).golden;
                         });

}  // namespace
}  // namespace gradring::tests
