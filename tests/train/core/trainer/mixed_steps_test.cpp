// SPDX-License-Identifier: Apache-2.0
// Ten steps in f16 and bf16 with f32 master weights, against what PyTorch computed in f32.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <ostream>

#include "kernels/ops/elementwise/elementwise.h"
#include "tests/nn/support/program_rig.h"
#include "tests/support/safetensors.h"
#include "tests/support/sanitizer.h"
#include "tests/train/support/rank_rig.h"

namespace gradring::tests {
namespace {

using kernels::DType;

struct MixedCase {
  std::string backend;  ///< cpu: products in f32, rounded where a GPU stores; kernels: the CUDA text itself
  DType precision;
  std::size_t steps;
  double loss_tolerance;
  double gradient_tolerance;  ///< of the first step, relative in the Euclidean norm (see golden_step_test.cpp)
  double weight_tolerance;    ///< after ten steps, the same
};

void PrintTo(const MixedCase& c, std::ostream* out) { *out << c.backend << ' ' << name_of(c.precision); }

class MixedSteps : public testing::TestWithParam<MixedCase> {};

std::vector<std::int64_t> samples_of_step(std::size_t step, std::int64_t batch) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(batch));
  std::iota(indices.begin(), indices.end(), static_cast<std::int64_t>(step) * batch);
  return indices;
}

/// Whether the weights that layers read are the master weights, rounded.
void expect_rounded_copy(train::Replica& replica) {
  const kernels::Buffer host = replica.weights_on_host(Deadline::after(std::chrono::minutes(1)));
  const nn::Arena master{replica.layout(), host.as<float>()};
  const nn::Weights weights = replica.whole_weights().view;
  const nn::ArenaLayout& layout = replica.layout();
  for (int i = 0; i < layout.parameters(); ++i) {
    const std::size_t elements = layout.parameter(i).elements;
    std::vector<std::byte> rounded(elements * kernels::size_of(weights.dtype));
    kernels::cast::reference_run(
        {.from = DType::f32, .to = weights.dtype, .x = master.parameter(i), .y = rounded.data(), .elements = elements});
    EXPECT_EQ(std::memcmp(weights.parameter(i), rounded.data(), rounded.size()), 0) << "parameter " << i;
  }
}

TEST_P(MixedSteps, LossesGradientsAndWeightsStayNearPyTorch) {
  constexpr std::int64_t kBatch = 32;
  const MixedCase& c = GetParam();
  const auto golden = tests::read_golden("convnet_10steps_adam");
  const auto first = tests::read_golden("convnet_step_seed0");
  const auto losses = golden.at("losses").as<double>();
  const auto dataset = golden_images();
  run_ranks(1, [&](comm::ProcessGroup& group) {
    RankRig rig(group, *dataset,
                {.backend = c.backend,
                 .optimizer = {.kind = train::OptimizerKind::adam},
                 .max_batch = kBatch,
                 .precision = c.precision,
                 .loss_scaling = {.dynamic = c.precision == DType::f16, .policy = {}}});
    const std::size_t steps = kSanitizer.empty() ? c.steps : 1;
    for (std::size_t step = 0; step < steps; ++step) {
      const train::StepResult result = rig.step(samples_of_step(step, kBatch), kBatch);
      EXPECT_FALSE(result.skipped) << "step " << step;
      EXPECT_NEAR(result.loss, losses[step], c.loss_tolerance) << "step " << step;
      if (step > 0) continue;
      auto gradients = rig.gradients();
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        const std::string& name = rig.parameters()[i].name;
        for (float& value : gradients[i]) value /= result.loss_scale;
        EXPECT_LT(relative_error(gradients[i], first.at("grad." + name).as<float>()), c.gradient_tolerance) << name;
      }
    }
    expect_rounded_copy(rig.replica());
    if (steps < losses.size()) return;  // the stored weights are those after all steps
    const auto weights = rig.weights();
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (const auto stored = golden.find(rig.parameters()[i].name); stored != golden.end()) {
        EXPECT_LT(relative_error(weights[i], stored->second.as<float>()), c.weight_tolerance) << stored->first;
      }
  });
}

INSTANTIATE_TEST_SUITE_P(Precisions, MixedSteps,
                         testing::Values(MixedCase{"cpu", DType::f16, 10, 5e-3, 4e-2, 2e-2},
                                         MixedCase{"kernels", DType::f16, 10, 5e-3, 4e-2, 2e-2},
                                         MixedCase{"cpu", DType::bf16, 10, 4e-2, 0.13, 0.1},
                                         MixedCase{"kernels", DType::bf16, 2, 4e-2, 0.13, 0.1}),
                         [](const auto& test) {
                           return test.param.backend + "_" + std::string(name_of(test.param.precision));
                         });

}  // namespace
}  // namespace gradring::tests
