// SPDX-License-Identifier: Apache-2.0
// Every backend against the reference, on models and shapes that the golden values do not cover.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "kernels/ops/cross_entropy/cross_entropy.h"
#include "tests/nn/support/gpu_rig.h"

namespace gradring::tests {
namespace {

struct AgreeCase {
  std::string name;
  nn::Model model;
  std::int64_t batch;
};

std::vector<AgreeCase> cases() {
  nn::Model strided{.name = "strided", .sample = {9, 7, 2}, .classes = 3, .layers = {}};
  strided.layers = {{"a", nn::Conv2d{.in_channels = 2, .out_channels = 5, .kernel = 3, .stride = 2, .padding = 1}},
                    {"b", nn::Conv2d{.in_channels = 5, .out_channels = 17, .kernel = 1}},  // two in a row, no ReLU
                    {"c", nn::Relu{}},
                    {"d", nn::Flatten{}},
                    {"e", nn::Linear{.in_features = 5 * 4 * 17, .out_features = 3}}};
  nn::Model overlapping{.name = "overlapping", .sample = {8, 8, 1}, .classes = 4, .layers = {}};
  overlapping.layers = {{"a", nn::MaxPool2d{.window = 3, .stride = 2}},
                        {"b", nn::Conv2d{.in_channels = 1, .out_channels = 3, .kernel = 3, .padding = 2}},
                        {"c", nn::MaxPool2d{}},
                        {"d", nn::Relu{}},
                        {"e", nn::Flatten{}},
                        {"f", nn::Linear{.in_features = 2 * 2 * 3, .out_features = 4}}};
  nn::Model windows{.name = "windows", .sample = {38, 38, 2}, .classes = 3, .layers = {}};
  windows.layers = {{"a", nn::Conv2d{.in_channels = 2, .out_channels = 5, .kernel = 3}},
                    {"b", nn::Relu{}},
                    {"c", nn::MaxPool2d{.window = 3, .stride = 3}},  // the largest that is fused
                    {"d", nn::Conv2d{.in_channels = 5, .out_channels = 4, .kernel = 3, .padding = 1}},
                    {"e", nn::Relu{}},
                    {"f", nn::MaxPool2d{.window = 4, .stride = 4}},
                    {"g", nn::Flatten{}},
                    {"h", nn::Linear{.in_features = 3 * 3 * 4, .out_features = 3}}};
  nn::Model alone{.name = "alone", .sample = {3, 4, 1}, .classes = 6, .layers = {}};
  alone.layers = {{"a", nn::Flatten{}}, {"b", nn::Linear{.in_features = 12, .out_features = 6}}};
  nn::Model scaled{.name = "scaled", .sample = {3, 4, 1}, .classes = 6, .layers = {}};
  scaled.layers = {{"a", nn::Scale{.factor = 1.5f}},
                   {"b", nn::Flatten{}},
                   {"c", nn::Linear{.in_features = 12, .out_features = 6}},
                   {"d", nn::Scale{.factor = 0.25f}}};
  constexpr std::int64_t kFar = std::numeric_limits<std::int32_t>::max();  // beside a padding, sums overflow
  nn::Model far{.name = "far", .sample = {9, 7, 2}, .classes = 3, .layers = {}};
  far.layers = {{"a", nn::MaxPool2d{.window = 2, .stride = 1}},
                {"b", nn::Conv2d{.in_channels = 2, .out_channels = 5, .kernel = 3, .stride = kFar, .padding = 1}},
                {"c", nn::MaxPool2d{.window = 3, .stride = kFar, .padding = 1}},
                {"d", nn::Flatten{}},
                {"e", nn::Linear{.in_features = 5, .out_features = 3}}};
  return {{"rgb", nn::convnet({32, 32, 3}, 7), 3},
          {"deep", nn::convnet_deep({9, 13, 2}, 4), 3},
          {"strided", strided, 5},
          {"far", far, 2},
          {"overlapping", overlapping, 1},
          {"windows", windows, 2},
          {"one layer", alone, 4},
          {"scaled", scaled, 4},
          {"residual", residual_model(), 3},
          {"batch norm", batch_norm_model(), 3},
          {"dropout", dropout_model(), 3},
          {"many classes", nn::convnet({12, 12, 1}, kernels::linear_cross_entropy::kMostClasses + 1), 2}};
}

class EachBackend : public testing::TestWithParam<std::string> {};

TEST_P(EachBackend, AgreesWithTheReference) {
  for (const AgreeCase& c : cases()) {
    SCOPED_TRACE(c.name);
    std::mt19937 random(11);
    std::vector<float> images(static_cast<std::size_t>(c.batch * c.model.sample.elements()));
    for (float& value : images) value = std::uniform_real_distribution<float>(-1, 1)(random);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(c.batch));
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(random() % c.model.classes);

    ProgramRig reference(c.model, c.batch, "reference");
    reference.draw_weights(4);
    reference.set_random({.seed = 4}, 2);
    const auto expected = reference.run(images, labels);
    std::string why_not;
    RigDevice on = on_any_device(GetParam(), why_not);
    if (!on.device) GTEST_SKIP() << why_not;
    ProgramRig rig(c.model, c.batch, std::move(on));
    rig.draw_weights(4);
    rig.set_random({.seed = 4}, 2);
    const auto actual = rig.run(images, labels);
    EXPECT_LT(relative_error(actual.logits, expected.logits), 1e-5);
    EXPECT_NEAR(actual.loss, expected.loss, 1e-5);
    EXPECT_EQ(actual.correct, expected.correct);
    for (std::size_t i = 0; i < rig.parameters().size(); ++i)
      EXPECT_LT(relative_error(rig.gradient(i), reference.gradient(i)), 1e-5) << rig.parameters()[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, EachBackend, testing::Values("cpu", "kernels", "cuda"),
                         [](const auto& test) { return test.param; });

/// How many layers the plan of the loss takes along.
std::size_t in_head(const nn::Layer& last, std::int64_t classes, kernels::DType dtype) {
  const kernels::HostDevice device;
  const nn::NodeSpec node{last, {2, 8}, {2, classes}, dtype};
  return make_backend("kernels", device)
      ->plan_cross_entropy({.rows = 2, .classes = classes, .dtype = dtype}, &node)
      ->nodes();
}

TEST(Backends, PlanALinearLayerToFewClassesWithTheLoss) {
  const std::int64_t most = kernels::linear_cross_entropy::kMostClasses;
  for (const auto dtype : {kernels::DType::f32, kernels::DType::f16, kernels::DType::bf16}) {
    EXPECT_EQ(in_head(nn::Linear{.in_features = 8, .out_features = most}, most, dtype), 1u);
    EXPECT_EQ(in_head(nn::Linear{.in_features = 8, .out_features = most + 1}, most + 1, dtype), 0u);
    EXPECT_EQ(in_head(nn::Relu{}, 8, dtype), 0u);
  }
}

}  // namespace
}  // namespace gradring::tests
