// SPDX-License-Identifier: Apache-2.0
// Every backend against the reference, on models and shapes that the golden values do not cover.
#include <gtest/gtest.h>

#include <random>

#include "tests/nn/support/program_rig.h"

namespace gradring::tests {
namespace {

struct Case {
  std::string name;
  nn::Model model;
  std::int64_t batch;
};

std::vector<Case> cases() {
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
  return {{"rgb", nn::convnet({32, 32, 3}, 7), 3}, {"strided", strided, 5}, {"overlapping", overlapping, 1}};
}

TEST(Backends, AgreeWithTheReference) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    std::mt19937 random(11);
    std::vector<float> images(static_cast<std::size_t>(c.batch * c.model.sample.elements()));
    for (float& value : images) value = std::uniform_real_distribution<float>(-1, 1)(random);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(c.batch));
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(random() % c.model.classes);

    ProgramRig reference(c.model, c.batch, "reference"), cpu(c.model, c.batch, "cpu");
    reference.draw_weights(4);
    cpu.draw_weights(4);
    nn::NoObserver observer;
    const auto expected = reference.run(images, labels, &observer);
    const auto actual = cpu.run(images, labels, &observer);
    EXPECT_LT(relative_error(actual.logits, expected.logits), 1e-5);
    EXPECT_NEAR(actual.loss, expected.loss, 1e-5);
    EXPECT_EQ(actual.correct, expected.correct);
    for (std::size_t i = 0; i < cpu.parameters().size(); ++i)
      EXPECT_LT(relative_error(cpu.gradient(i), reference.gradient(i)), 1e-5) << cpu.parameters()[i].name;
  }
}

}  // namespace
}  // namespace gradring::tests
