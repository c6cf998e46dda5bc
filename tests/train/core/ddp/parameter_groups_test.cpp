// SPDX-License-Identifier: Apache-2.0
#include "train/core/ddp/parameter_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kernels/base/error.h"
#include "tests/data/support/message_of.h"

namespace gradring::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

nn::Parameter parameter(const std::string& name) {
  const nn::Shape shape = name.ends_with("weight") ? nn::Shape{4, 3} : nn::Shape{4};
  return {.name = name, .shape = shape, .torch_shape = shape};
}

const std::vector<nn::Parameter>& model() {
  static const std::vector<nn::Parameter> parameters = {parameter("a.weight"), parameter("a.bias"),
                                                        parameter("b.weight"), parameter("b.bias")};
  return parameters;
}

std::string refusal(const OptimizerSpec& spec) {
  return tests::message_of<InvalidArgument>([&] { parameter_groups(model(), spec); });
}

TEST(ParameterGroups, AreOneWithoutOptions) {
  const ParameterGroups groups = parameter_groups(model(), {.weight_decay = 1, .ema = 0.5});
  EXPECT_EQ(groups.groups.size(), 1u);
  EXPECT_THAT(groups.of_parameter, ElementsAre(0, 0, 0, 0));
}

TEST(ParameterGroups, LaterOverridesWinKeyByKey) {
  const ParameterGroups groups =
      parameter_groups(model(), {.weight_decay = 1,
                                 .groups = {{.pattern = "*", .learning_rate = 1, .weight_decay = 2},
                                            {.pattern = "b.*", .learning_rate = 3},
                                            {.pattern = "a.*", .learning_rate = 3}}});
  EXPECT_THAT(groups.of_parameter, ElementsAre(1, 1, 1, 1)) << "equal options are one group";
  EXPECT_EQ(groups.groups[1].learning_rate, 3);
  EXPECT_EQ(groups.groups[1].options.weight_decay, 2);
  EXPECT_EQ(groups.groups[0].options.weight_decay, 1);
}

TEST(ParameterGroups, OverrideNoBiasDecay) {
  const ParameterGroups groups = parameter_groups(
      model(), {.weight_decay = 1, .no_bias_decay = true, .groups = {{.pattern = "b.bias", .weight_decay = 1}}});
  EXPECT_THAT(groups.of_parameter, ElementsAre(0, 1, 0, 0));
}

TEST(ParameterGroups, DropWhatAnotherOptimizerLacks) {
  const ParameterGroups groups =
      parameter_groups(model(), {.kind = OptimizerKind::sgd,
                                 .momentum = 0.9,
                                 .nesterov = true,
                                 .groups = {{.pattern = "*.bias", .kind = OptimizerKind::adam, .epsilon = 1e-3}}});
  EXPECT_THAT(groups.of_parameter, ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(groups.groups[1].options.momentum, 0);
  EXPECT_FALSE(groups.groups[1].options.nesterov);
  EXPECT_EQ(groups.groups[1].options.epsilon, 1e-3);
}

TEST(ParameterGroups, RejectWhatDoesNotFit) {
  EXPECT_THAT(refusal({.groups = {{.pattern = "c.*", .learning_rate = 1}}}),
              HasSubstr("--group 'c.*' matches no parameter of the model, which has a.weight, a.bias"));
  EXPECT_THAT(refusal({.groups = {{.pattern = "*", .momentum = 0.9}}}),
              HasSubstr("--group '*': momentum, dampening and nesterov require optimizer=sgd"));
  EXPECT_THAT(refusal({.kind = OptimizerKind::sgd, .groups = {{.pattern = "*", .betas = Betas()}}}),
              HasSubstr("betas and eps require optimizer=adam"));
  EXPECT_THAT(refusal({.kind = OptimizerKind::sgd,
                       .momentum = 0.9,
                       .nesterov = true,
                       .groups = {{.pattern = "*", .momentum = 0.0}}}),
              HasSubstr("nesterov needs a momentum"));
  EXPECT_THAT(refusal({.groups = {{.pattern = "*", .frozen = true}}}), HasSubstr("leave some to train"));
}

}  // namespace
}  // namespace gradring::train
