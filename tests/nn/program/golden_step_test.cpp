// SPDX-License-Identifier: Apache-2.0
// The whole ConvNet, forward and backward, against values made with PyTorch.
#include <gtest/gtest.h>

#include <ostream>
#include <utility>

#include "tests/nn/support/gpu_rig.h"
#include "tests/support/safetensors.h"

namespace gradring::tests {
namespace {

struct GoldenCase {
  std::string backend;
  kernels::DType dtype;
  double tolerance;           ///< of logits and loss; of logits relative, in the Euclidean norm
  double gradient_tolerance;  ///< the same, of gradients
};

void PrintTo(const GoldenCase& c, std::ostream* out) { *out << c.backend << ' ' << name_of(c.dtype); }

class GoldenStep : public testing::TestWithParam<GoldenCase> {};

// PyTorch's values are f32. In f16 and bf16 every stored value is rounded, by up to 2^-11 and 2^-8 of its size; what it
// moves in the logits is of that order. In the gradients it is of the order of its square root: a rounding that makes
// another place of a pooling window the maximum, or turns a ReLU off, moves a whole gradient there, and the share of the
// places where that happens grows with the rounding.
TEST_P(GoldenStep, LogitsLossAndEveryGradientMatchPyTorch) {
  constexpr std::size_t kBatch = 32;
  const double tolerance = GetParam().tolerance;
  const auto golden = tests::read_golden("convnet_step_seed0");
  const auto pixels = golden.at("images_u8").as<std::uint8_t>();
  const auto classes = golden.at("labels").as<std::int64_t>();
  std::vector<float> images(kBatch * 28 * 28);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = (static_cast<float>(pixels[i]) / 255.0f - 0.5f) / 0.5f;
  const std::vector<std::int32_t> labels(classes.begin(), classes.begin() + kBatch);

  std::string why_not;
  RigDevice on = on_any_device(GetParam().backend, why_not);
  if (!on.device) GTEST_SKIP() << why_not;
  ProgramRig rig(nn::convnet({28, 28, 1}, 10), kBatch, std::move(on), nn::ProgramMode::training, GetParam().dtype);
  rig.draw_weights(0);
  nn::NoObserver observer;
  const auto result = rig.run(images, labels, &observer);

  EXPECT_LT(relative_error(result.logits, golden.at("logits").as<float>()), tolerance);
  EXPECT_NEAR(result.loss, golden.at("loss").as<float>()[0], tolerance);
  for (std::size_t i = 0; i < rig.parameters().size(); ++i) {
    const std::string& name = rig.parameters()[i].name;
    EXPECT_LT(relative_error(rig.gradient(i), golden.at("grad." + name).as<float>()), GetParam().gradient_tolerance)
        << name;
  }
}

using kernels::DType;
INSTANTIATE_TEST_SUITE_P(
    Backends, GoldenStep,
    testing::Values(GoldenCase{"reference", DType::f32, 1e-4, 1e-4}, GoldenCase{"cpu", DType::f32, 1e-4, 1e-4},
                    GoldenCase{"kernels", DType::f32, 1e-4, 1e-4}, GoldenCase{"cpu", DType::f16, 4e-3, 4e-2},
                    GoldenCase{"kernels", DType::f16, 4e-3, 4e-2}, GoldenCase{"cpu", DType::bf16, 3e-2, 0.13},
                    GoldenCase{"kernels", DType::bf16, 3e-2, 0.13}, GoldenCase{"cuda", DType::f32, 1e-4, 1e-4},
                    GoldenCase{"cuda", DType::f16, 4e-3, 4e-2}, GoldenCase{"cuda", DType::bf16, 3e-2, 0.13}),
    [](const auto& test) { return test.param.backend + "_" + std::string(name_of(test.param.dtype)); });

}  // namespace
}  // namespace gradring::tests
