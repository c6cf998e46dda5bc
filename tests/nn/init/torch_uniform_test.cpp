// SPDX-License-Identifier: Apache-2.0
#include "nn/init/torch_uniform.h"

#include <gtest/gtest.h>

#include "tests/support/safetensors.h"

namespace gradring::nn {
namespace {

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

TEST(TorchUniform, AnotherSeedGivesTheDocumentedValues) {
  const auto drawn = draw_torch_uniform(parameters_of(convnet({28, 28, 1}, 10)), 42);
  EXPECT_NEAR(drawn[0][0], 0.254846, 1e-6);
  EXPECT_NEAR(drawn[0][1], 0.276669, 1e-6);
  EXPECT_NEAR(drawn[0][2], -0.078091, 1e-6);
}

}  // namespace
}  // namespace gradring::nn
