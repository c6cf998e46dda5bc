// SPDX-License-Identifier: Apache-2.0
#include "nn/layers/parameter.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kernels/base/error.h"
#include "nn/models/model.h"
#include "tests/support/safetensors.h"

namespace gradring::nn {
namespace {

std::vector<float> counted(std::size_t elements) {
  std::vector<float> values(elements);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST(Parameter, TheConvNetHasPyTorchsNamesAndSizes) {
  const auto parameters = parameters_of(convnet({28, 28, 1}, 10));
  std::vector<std::string> names;
  std::int64_t elements = 0;
  for (const Parameter& parameter : parameters) {
    names.push_back(parameter.name);
    elements += parameter.shape.elements();
    EXPECT_EQ(parameter.shape.elements(), parameter.torch_shape.elements()) << parameter.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"conv_layers.0.weight", "conv_layers.0.bias", "conv_layers.3.weight",
                                             "conv_layers.3.bias", "fc_layers.0.weight", "fc_layers.0.bias",
                                             "fc_layers.2.weight", "fc_layers.2.bias"}));
  EXPECT_EQ(elements, 431242);
}

TEST(Parameter, ConvolutionsLieAsOhwi) {
  const auto parameters = parameters_of(convnet({28, 28, 1}, 10));
  const Parameter& weight = parameters[2];  // [64, 32, 3, 3] in PyTorch
  ASSERT_EQ(weight.torch_shape, Shape({64, 32, 3, 3}));
  const auto torch = counted(static_cast<std::size_t>(weight.shape.elements()));
  std::vector<float> ours(torch.size());
  from_torch_order(weight, torch, ours);
  const auto at = [](int o, int h, int w, int i) { return static_cast<std::size_t>(((o * 3 + h) * 3 + w) * 32 + i); };
  EXPECT_EQ(ours[at(5, 1, 2, 7)], torch[((5 * 32 + 7) * 3 + 1) * 3 + 2]);
}

TEST(Parameter, TheLayerBehindAFlattenTakesHwcColumns) {
  const auto parameters = parameters_of(convnet({28, 28, 1}, 10));
  const Parameter& weight = parameters[4];  // [256, 1600]: 64 channels of 5 x 5
  const auto torch = counted(static_cast<std::size_t>(weight.shape.elements()));
  std::vector<float> ours(torch.size());
  from_torch_order(weight, torch, ours);
  const std::size_t row = 3, h = 4, w = 2, c = 61;
  EXPECT_EQ(ours[row * 1600 + (h * 5 + w) * 64 + c], torch[row * 1600 + c * 25 + h * 5 + w]);
}

TEST(Parameter, OrdersAreInverse) {
  for (const Parameter& parameter : parameters_of(convnet({32, 32, 3}, 7))) {
    const auto torch = counted(static_cast<std::size_t>(parameter.shape.elements()));
    std::vector<float> ours(torch.size()), back(torch.size());
    from_torch_order(parameter, torch, ours);
    to_torch_order(parameter, ours, back);
    EXPECT_EQ(back, torch) << parameter.name;
  }
}

TEST(Parameter, RejectsSpansOfAnotherSize) {
  const Parameter bias = parameters_of(convnet({28, 28, 1}, 10))[1];
  std::vector<float> small(31), right(32);
  EXPECT_THROW(to_torch_order(bias, small, right), InvalidArgument);
  EXPECT_THROW(from_torch_order(bias, right, small), InvalidArgument);
}

TEST(TorchUniform, DrawsTheWeightsOfSeedZeroBitForBit) {
  const auto golden = tests::read_golden("convnet_init_seed0");
  const auto parameters = parameters_of(convnet({28, 28, 1}, 10));
  const auto drawn = draw_torch_uniform(parameters, 0);
  ASSERT_EQ(golden.size(), parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& stored = golden.at(parameters[i].name);
    EXPECT_EQ(parameters[i].torch_shape, Shape(std::span(stored.shape))) << parameters[i].name;
    EXPECT_EQ(drawn[i], stored.as<float>()) << parameters[i].name;
  }
}

TEST(TorchUniform, ConstantsTakeNoRandomWords) {
  auto parameters = parameters_of(convnet({28, 28, 1}, 10));
  const auto without = draw_torch_uniform(parameters, 0);
  parameters.insert(parameters.begin() + 1, {.name = "scale", .shape = {3}, .torch_shape = {3}, .constant = 1});
  const auto drawn = draw_torch_uniform(parameters, 0);
  EXPECT_EQ(drawn[1], std::vector<float>(3, 1.0f));
  EXPECT_EQ(drawn[2], without[1]);
}

TEST(TorchUniform, AnotherSeedGivesTheDocumentedValues) {
  const auto drawn = draw_torch_uniform(parameters_of(convnet({28, 28, 1}, 10)), 42);
  EXPECT_NEAR(drawn[0][0], 0.254846, 1e-6);
  EXPECT_NEAR(drawn[0][1], 0.276669, 1e-6);
  EXPECT_NEAR(drawn[0][2], -0.078091, 1e-6);
}

}  // namespace
}  // namespace gradring::nn
