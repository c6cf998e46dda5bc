// SPDX-License-Identifier: Apache-2.0
#include "nn/models/model.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"
#include "tests/nn/support/program_rig.h"
#include "tests/support/safetensors.h"

namespace gradring::tests {
namespace {

struct ModelCase {
  std::string golden;
  nn::Model model;
};

std::vector<ModelCase> model_cases() {
  return {{"convnet_deep_step_seed0_gray", nn::convnet_deep({28, 28, 1}, 10)},
          {"convnet_deep_step_seed0_rgb", nn::convnet_deep({32, 32, 3}, 7)},
          {"airbench94_step_seed0", nn::make_model("airbench94", {32, 32, 3}, 10)}};
}

/// What the golden file keeps of a tensor: its norm, and about 256 of its elements.
struct Digest {
  std::vector<float> norm;
  std::vector<float> some;
};

Digest digest(const std::vector<float>& values) {
  constexpr std::size_t kKept = 256;
  Digest result;
  double squares = 0;
  for (float value : values) squares += static_cast<double>(value) * value;
  result.norm = {static_cast<float>(std::sqrt(squares))};
  for (std::size_t i = 0; i < values.size(); i += values.size() / kKept | 1) result.some.push_back(values[i]);
  return result;
}

TEST(ConvNetDeep, HasEightConvolutionsWithPyTorchsNames) {
  const nn::Model model = nn::make_model("convnet-deep", {28, 28, 1}, 10);
  EXPECT_EQ(model.name, "convnet-deep");
  EXPECT_EQ(std::ranges::count_if(model.layers,
                                  [](const auto& named) { return std::holds_alternative<nn::Conv2d>(named.layer); }),
            8);
  const auto parameters = nn::parameters_of(model);
  std::int64_t elements = 0;
  for (const nn::Parameter& parameter : parameters) elements += parameter.shape.elements();
  EXPECT_EQ(elements, 1'098'074);
  ASSERT_EQ(parameters.size(), 20u);
  EXPECT_EQ(parameters[14].name, "conv_layers.17.weight");
  EXPECT_EQ(parameters[16].name, "fc_layers.0.weight");
}

TEST(LeNet5, HasThePartsOfPyTorchsTutorial) {
  const nn::Model model = nn::make_model("lenet5", {32, 32, 1}, 10);
  std::vector<std::string> names;
  for (const nn::Parameter& parameter : nn::parameters_of(model)) names.push_back(parameter.name);
  EXPECT_THAT(names, testing::ElementsAre("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                          "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"));
  EXPECT_EQ(nn::parameters_of(model)[4].torch_shape, nn::Shape({120, 16 * 5 * 5}));
}

TEST(Airbench94, HasTheNamesAndSizesOfItsSource) {
  const nn::Model model = nn::make_model("airbench94", {32, 32, 3}, 10);
  std::vector<std::string> names;
  std::int64_t elements = 0;
  for (const nn::Parameter& parameter : nn::parameters_of(model)) {
    names.push_back(parameter.name);
    elements += parameter.shape.elements();
  }
  EXPECT_THAT(names, testing::ElementsAre("whiten.weight", "whiten.bias", "layers.1.conv1.weight",
                                          "layers.1.norm1.weight", "layers.1.norm1.bias", "layers.1.conv2.weight",
                                          "layers.1.norm2.weight", "layers.1.norm2.bias", "layers.2.conv1.weight",
                                          "layers.2.norm1.weight", "layers.2.norm1.bias", "layers.2.conv2.weight",
                                          "layers.2.norm2.weight", "layers.2.norm2.bias", "layers.3.conv1.weight",
                                          "layers.3.norm1.weight", "layers.3.norm1.bias", "layers.3.conv2.weight",
                                          "layers.3.norm2.weight", "layers.3.norm2.bias", "head.weight"));
  EXPECT_EQ(elements, 1'972'792);
  EXPECT_EQ(nn::describe_layers(model).back(), "scale: x * 0.00390625 of head");
}

TEST(DescribeLayers, NamesWhatEachReads) {
  const std::vector<std::string> lines = nn::describe_layers(residual_model());
  EXPECT_EQ(lines.at(0), "pre: Conv2d(2, 2, 3, stride=1, padding=1) of input");
  EXPECT_EQ(lines.at(1), "sum0: x + residual of pre and input");
}

/// A resume compares these lines.
TEST(DescribeLayers, NamesConstantsOfBatchNorm2dThatAreNotTheUsual) {
  const nn::Model model = nn::read_model({"net.toml", R"(layers = [
      { batch_norm2d = "a" },
      { batch_norm2d = "b", eps = 1e-3, momentum = 0.4 },
      { flatten = "flatten" },
      { linear = "fc", out = "classes" },
  ])"},
                                         {8, 8, 3}, 10);
  const std::vector<std::string> lines = nn::describe_layers(model);
  EXPECT_EQ(lines.at(0), "a: BatchNorm2d(3) of input");
  EXPECT_EQ(lines.at(1), "b: BatchNorm2d(3, eps=0.001, momentum=0.4) of a");
}

TEST(ConvNetDeep, RejectsImagesThatPoolingShrinksToNothing) {
  EXPECT_NO_THROW(nn::convnet_deep({8, 8, 1}, 2));
  EXPECT_THROW(nn::convnet_deep({8, 7, 1}, 2), InvalidArgument);
  EXPECT_THROW(nn::convnet_deep({8, 8}, 2), InvalidArgument);
}

TEST(Model, StartsWithPyTorchsWeights) {
  for (const ModelCase& c : model_cases()) {
    SCOPED_TRACE(c.golden);
    const auto golden = read_golden(c.golden);
    const auto parameters = nn::parameters_of(c.model);
    const auto drawn = nn::draw_torch_uniform(parameters, 0);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::vector<float> some = golden.at("weight." + parameters[i].name + ".some").as<float>();
      if (parameters[i].init == nn::Init::unit_variance)
        EXPECT_LT(relative_error(digest(drawn[i]).some, some), 1e-6) << parameters[i].name;
      else
        EXPECT_EQ(digest(drawn[i]).some, some) << parameters[i].name;
    }
  }
}

class ModelBy : public testing::TestWithParam<std::string> {};

TEST_P(ModelBy, LogitsLossAndEveryGradientMatchPyTorch) {
  for (const ModelCase& c : model_cases()) {
    SCOPED_TRACE(c.golden);
    const auto golden = read_golden(c.golden);
    const auto pixels = golden.at("images_u8").as<std::uint8_t>();
    const auto classes = golden.at("labels").as<std::int64_t>();
    std::vector<float> images;
    for (std::uint8_t pixel : pixels) images.push_back((static_cast<float>(pixel) / 255.0f - 0.5f) / 0.5f);

    ProgramRig rig(c.model, static_cast<std::int64_t>(classes.size()), GetParam());
    rig.draw_weights(0);
    const auto result = rig.run(images, {classes.begin(), classes.end()});

    EXPECT_LT(relative_error(result.logits, golden.at("logits").as<float>()), 1e-4);
    EXPECT_NEAR(result.loss, golden.at("loss").as<float>()[0], 1e-4);
    for (std::size_t i = 0; i < rig.parameters().size(); ++i) {
      const std::string name = "grad." + rig.parameters()[i].name;
      EXPECT_EQ(rig.parameters()[i].frozen, !golden.contains(name + ".norm")) << name;
      if (rig.parameters()[i].frozen) continue;
      const Digest gradient = digest(rig.gradient(i));
      EXPECT_LT(relative_error(gradient.some, golden.at(name + ".some").as<float>()), 1e-4) << name;
      EXPECT_LT(relative_error(gradient.norm, golden.at(name + ".norm").as<float>()), 1e-4) << name;
    }
    if (!golden.contains("evaluation")) continue;
    ProgramRig evaluation(c.model, static_cast<std::int64_t>(classes.size()), GetParam(), nn::ProgramMode::evaluation);
    evaluation.draw_weights(0);
    evaluation.set_buffers(rig.buffers());
    EXPECT_LT(relative_error(evaluation.run(images, {classes.begin(), classes.end()}).logits,
                             golden.at("evaluation").as<float>()),
              1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ModelBy, testing::Values("reference", "cpu", "kernels"),
                         [](const auto& backend) { return backend.param; });

}  // namespace
}  // namespace gradring::tests
