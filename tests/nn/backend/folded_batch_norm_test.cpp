// SPDX-License-Identifier: Apache-2.0
// Batch normalization folded into the convolution before it: evaluation programs of every backend against the reference,
// which normalizes by itself. program_test.cpp compares with PyTorch.
#include <gtest/gtest.h>

#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "tests/nn/support/gpu_rig.h"

namespace gradring::tests {
namespace {

using kernels::DType;

/// A convolution with a bias, ReLU and pooling; a depthwise one; one whose normalization an addition follows; one of which
/// two layers read; and one with more weights than outputs.
nn::Model folding_model() {
  const auto conv = [](std::int64_t from, std::int64_t to, std::int64_t groups, bool bias) {
    return nn::Conv2d{
        .in_channels = from, .out_channels = to, .kernel = 3, .padding = 1, .groups = groups, .bias = bias};
  };
  const auto norm = [](std::int64_t channels) { return nn::BatchNorm2d{.channels = channels, .eps = 1e-3f}; };
  nn::Model model{.name = "folding", .sample = {8, 8, 3}, .classes = 4, .layers = {}};
  model.layers = {{"conv0", conv(3, 8, 1, true)},
                  {"bn0", norm(8)},
                  {"relu0", nn::Relu{}},
                  {"pool0", nn::MaxPool2d{}},
                  {"conv1", conv(8, 8, 8, false)},
                  {"bn1", norm(8)},
                  {"conv2", conv(8, 8, 1, false)},
                  {"bn2", norm(8)},
                  {"sum2", nn::Add{}, {"bn2", "bn1"}},
                  {"conv3", conv(8, 8, 1, false)},
                  {"bn3", norm(8)},
                  {"sum3", nn::Add{}, {"bn3", "conv3"}},
                  {"conv4", nn::Conv2d{.in_channels = 8, .out_channels = 8, .kernel = 3, .stride = 2, .bias = false}},
                  {"bn4", norm(8)},
                  {"flatten", nn::Flatten{}},
                  {"fc", nn::Linear{.in_features = 8, .out_features = 4}}};
  return model;
}

constexpr std::int64_t kBatch = 5;

std::vector<float> random_images() {
  std::mt19937 random(3);
  std::vector<float> images(static_cast<std::size_t>(kBatch * folding_model().sample.elements()));
  for (float& value : images) value = std::uniform_real_distribution<float>(-1, 1)(random);
  return images;
}

/// Means around 0, variances around 1.
std::vector<std::vector<float>> random_statistics(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<float>> all;
  for (const nn::Parameter& buffer : nn::buffers_of(folding_model())) {
    const float least = buffer.name.ends_with("running_var") ? 0.25f : -1.0f;
    for (float& value : all.emplace_back(static_cast<std::size_t>(buffer.shape.elements())))
      value = std::uniform_real_distribution<float>(least, 2.0f)(random);
  }
  return all;
}

std::vector<float> evaluated(ProgramRig& rig, std::uint64_t weights, unsigned statistics) {
  rig.draw_weights(weights);
  rig.set_buffers(random_statistics(statistics));
  return rig.run(random_images(), {0, 1, 2, 3, 0}).logits;
}

struct FoldCase {
  std::string backend;
  DType dtype;
  double tolerance;
};

void PrintTo(const FoldCase& c, std::ostream* out) { *out << c.backend << ' ' << name_of(c.dtype); }

class FoldedBatchNorm : public testing::TestWithParam<FoldCase> {};

TEST_P(FoldedBatchNorm, GivesTheLogitsOfNormalizationByItself) {
  std::string why_not;
  RigDevice on = on_any_device(GetParam().backend, why_not);
  if (!on.device) GTEST_SKIP() << why_not;
  ProgramRig rig(folding_model(), kBatch, std::move(on), nn::ProgramMode::evaluation, GetParam().dtype);
  ProgramRig reference(folding_model(), kBatch, "reference", nn::ProgramMode::evaluation);
  for (const unsigned seed : {1u, 2u})  // weights and statistics change between evaluations
    EXPECT_LT(relative_error(evaluated(rig, seed, seed), evaluated(reference, seed, seed)), GetParam().tolerance);
}

TEST_P(FoldedBatchNorm, TakesTheNormalizationsThatNothingElseNeeds) {
  std::string why_not;
  RigDevice on = on_any_device(GetParam().backend, why_not);
  if (!on.device) GTEST_SKIP() << why_not;
  const ProgramRig rig(folding_model(), kBatch, std::move(on), nn::ProgramMode::evaluation, GetParam().dtype);
  std::vector<std::string> folded;
  for (const nn::PlanDescription& plan : rig.program().description())
    if (plan.by.find("batch_norm folded") != std::string::npos) folded.push_back(plan.layers.at(1));
  EXPECT_EQ(folded, std::vector<std::string>({"bn0", "bn1"}));
}

INSTANTIATE_TEST_SUITE_P(Backends, FoldedBatchNorm,
                         testing::Values(FoldCase{"cpu", DType::f32, 1e-5}, FoldCase{"kernels", DType::f32, 1e-5},
                                         FoldCase{"cuda", DType::f32, 1e-5}, FoldCase{"cpu", DType::f16, 4e-3},
                                         FoldCase{"kernels", DType::f16, 4e-3}, FoldCase{"cuda", DType::f16, 4e-3},
                                         FoldCase{"cpu", DType::bf16, 3e-2}, FoldCase{"kernels", DType::bf16, 3e-2},
                                         FoldCase{"cuda", DType::bf16, 3e-2}),
                         [](const auto& test) {
                           return test.param.backend + "_" + std::string(name_of(test.param.dtype));
                         });

TEST(FoldedBatchNorm, TrainingNormalizesByItself) {
  const ProgramRig rig(folding_model(), kBatch, "cpu");
  for (const nn::PlanDescription& plan : rig.program().description())
    EXPECT_EQ(plan.by.find("folded"), std::string::npos) << plan.layers.front();
}

}  // namespace
}  // namespace gradring::tests
