// SPDX-License-Identifier: Apache-2.0
// The whole ConvNet, forward and backward, against values made with PyTorch.
#include <gtest/gtest.h>

#include "tests/nn/support/program_rig.h"
#include "tests/support/safetensors.h"

namespace gradring::tests {
namespace {

class GoldenStep : public testing::TestWithParam<std::string> {};

TEST_P(GoldenStep, LogitsLossAndEveryGradientMatchPyTorch) {
  constexpr std::size_t kBatch = 32;
  constexpr double kTolerance = 1e-4;
  const auto golden = tests::read_golden("convnet_step_seed0");
  const auto pixels = golden.at("images_u8").as<std::uint8_t>();
  const auto classes = golden.at("labels").as<std::int64_t>();
  std::vector<float> images(kBatch * 28 * 28);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = (static_cast<float>(pixels[i]) / 255.0f - 0.5f) / 0.5f;
  const std::vector<std::int32_t> labels(classes.begin(), classes.begin() + kBatch);

  ProgramRig rig(nn::convnet({28, 28, 1}, 10), kBatch, GetParam());
  rig.draw_weights(0);
  nn::NoObserver observer;
  const auto result = rig.run(images, labels, &observer);

  EXPECT_LT(relative_error(result.logits, golden.at("logits").as<float>()), kTolerance);
  EXPECT_NEAR(result.loss, golden.at("loss").as<float>()[0], kTolerance);
  for (std::size_t i = 0; i < rig.parameters().size(); ++i) {
    const std::string& name = rig.parameters()[i].name;
    EXPECT_LT(relative_error(rig.gradient(i), golden.at("grad." + name).as<float>()), kTolerance) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, GoldenStep, testing::Values("reference", "cpu"),
                         [](const auto& backend) { return backend.param; });

}  // namespace
}  // namespace gradring::tests
