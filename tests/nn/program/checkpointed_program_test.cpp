// SPDX-License-Identifier: Apache-2.0
// Programs that compute activations twice: the same bits, in less memory.
#include <gtest/gtest.h>

#include <ostream>
#include <random>

#include "kernels/base/error.h"
#include "tests/nn/support/program_rig.h"
#include "tests/support/sanitizer.h"

namespace gradring::tests {
namespace {

using kernels::DType;
using nn::Checkpointing;
using Kind = Checkpointing::Kind;

const std::vector<Checkpointing> kWays = {{.kind = Kind::segments, .segments = 1},
                                          {.kind = Kind::segments, .segments = 2},
                                          {.kind = Kind::segments, .segments = 3},
                                          {.kind = Kind::segments, .segments = 1000},
                                          {.kind = Kind::automatic}};

struct ModelSamples {
  std::vector<float> images;
  std::vector<std::int32_t> labels;

  ModelSamples(const nn::Model& model, std::int64_t count, unsigned seed)
      : images(static_cast<std::size_t>(count * model.sample.elements())), labels(static_cast<std::size_t>(count)) {
    std::mt19937 random(seed);
    for (float& value : images) value = std::uniform_real_distribution<float>(-1, 1)(random);
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(random() % model.classes);
  }
};

/// What one pass forward and backward gives.
struct Pass {
  std::vector<float> logits;
  double loss = 0;
  std::vector<std::vector<float>> gradients{};

  bool operator==(const Pass&) const = default;
};

Pass pass_of(ProgramRig& rig, const ModelSamples& samples) {
  const auto result = rig.run(samples.images, samples.labels);
  Pass pass{.logits = result.logits, .loss = result.loss};
  for (std::size_t i = 0; i < rig.parameters().size(); ++i) pass.gradients.push_back(rig.gradient(i));
  return pass;
}

const std::vector<std::int64_t> kBatches =
    kThreadSanitizer ? std::vector<std::int64_t>{3, 1} : std::vector<std::int64_t>{3, 2, 3, 1};

struct CheckpointedCase {
  std::string backend;
  DType dtype;
};

std::ostream& operator<<(std::ostream& out, const CheckpointedCase& c) {
  return out << c.backend << ' ' << name_of(c.dtype);
}

class Checkpointed : public testing::TestWithParam<CheckpointedCase> {
 protected:
  static ProgramRig rig(const nn::Model& model, std::int64_t batch, const Checkpointing& checkpointing) {
    return ProgramRig(model, batch, GetParam().backend, nn::ProgramMode::training, GetParam().dtype, checkpointing);
  }
};

// Fused plans and plans of one layer, the last layer with the loss or without, full batches and short ones, in turns.
TEST_P(Checkpointed, EveryGradientHasTheBitsOfAProgramThatKeepsAll) {
  nn::Model overlapping{
      .name = "overlapping", .sample = {8, 8, 1}, .classes = 4, .layers = {}};  // saves pooling's codes
  overlapping.layers = {{"a", nn::MaxPool2d{.window = 3, .stride = 2}},
                        {"b", nn::Conv2d{.in_channels = 1, .out_channels = 3, .kernel = 3, .padding = 2}},
                        {"c", nn::MaxPool2d{}},
                        {"d", nn::Relu{}},
                        {"e", nn::Flatten{}},
                        {"f", nn::Linear{.in_features = 2 * 2 * 3, .out_features = 4}}};
  for (const nn::Model& model : {nn::convnet({12, 12, 2}, 5), nn::convnet_deep({8, 9, 1}, 40), overlapping,
                                 residual_model(), batch_norm_model(), dropout_model()}) {
    ProgramRig whole = rig(model, 3, {});
    whole.draw_weights(3);
    whole.set_random({.seed = 4}, 2);
    std::vector<Pass> expected;
    for (const std::int64_t batch : kBatches) expected.push_back(pass_of(whole, ModelSamples(model, batch, 9)));
    for (const Checkpointing& way : kThreadSanitizer ? std::vector(kWays.begin(), kWays.begin() + 2) : kWays) {
      ProgramRig cut = rig(model, 3, way);
      SCOPED_TRACE(model.name + " in " + std::to_string(cut.program().segments().ends.size()) + " segments");
      cut.draw_weights(3);
      cut.set_random({.seed = 4}, 2);
      for (std::size_t i = 0; i < kBatches.size(); ++i) {
        SCOPED_TRACE("batch of " + std::to_string(kBatches[i]));
        EXPECT_EQ(pass_of(cut, ModelSamples(model, kBatches[i], 9)), expected[i]);
      }
    }
  }
}

TEST_P(Checkpointed, TheDeepConvNetNeedsHalfTheMemoryForItsActivations) {
  const nn::Model model = nn::convnet_deep({28, 28, 1}, 10);
  const std::size_t all = rig(model, 16, {}).program().memory().activations;
  const std::size_t fewer = rig(model, 16, {.kind = Kind::automatic}).program().memory().activations;
  EXPECT_LE(2 * fewer, all);
}

TEST_P(Checkpointed, ABudgetIsKeptAndNotUndercutForNothing) {
  const nn::Model model = nn::convnet_deep({16, 16, 1}, 10);
  const auto segments_for = [&](const Checkpointing& checkpointing) {
    return rig(model, 8, checkpointing).program().segments();
  };
  const nn::Segmentation all = segments_for({}), least = segments_for({.kind = Kind::automatic});
  const std::size_t between = (all.peak_bytes + least.peak_bytes) / 2;
  const nn::Segmentation chosen = segments_for({.kind = Kind::automatic, .budget_bytes = between});
  EXPECT_LE(chosen.peak_bytes, between);
  EXPECT_LT(chosen.work, least.work);
  EXPECT_THROW(segments_for({.kind = Kind::automatic, .budget_bytes = least.peak_bytes - 1}), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Backends, Checkpointed,
                         testing::Values(CheckpointedCase{"reference", DType::f32}, CheckpointedCase{"cpu", DType::f32},
                                         CheckpointedCase{"kernels", DType::f32}, CheckpointedCase{"cpu", DType::f16},
                                         CheckpointedCase{"kernels", DType::f16}, CheckpointedCase{"cpu", DType::bf16},
                                         CheckpointedCase{"kernels", DType::bf16}),
                         [](const auto& test) {
                           return test.param.backend + "_" + std::string(name_of(test.param.dtype));
                         });

TEST(CheckpointedProgram, KeepsWhatItSaysItKeeps) {
  const nn::Model model = nn::convnet_deep({28, 28, 1}, 10);
  for (const Checkpointing& way : kWays) {
    const ProgramRig rig(model, 8, "kernels", nn::ProgramMode::training, DType::f32, way);
    const std::size_t logits_with_the_loss = 8 * 10 * sizeof(float);  // the kernels' plan of the loss keeps them itself
    EXPECT_EQ(rig.program().memory().activations, rig.program().segments().peak_bytes + logits_with_the_loss);
  }
}

TEST(CheckpointedProgram, IsForTrainingAlone) {
  const nn::Model model = nn::convnet({12, 12, 1}, 3);
  EXPECT_THROW(ProgramRig(model, 2, "cpu", nn::ProgramMode::evaluation, DType::f32, {.kind = Kind::automatic}),
               InvalidArgument);
}

}  // namespace
}  // namespace gradring::tests
