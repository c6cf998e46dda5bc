// SPDX-License-Identifier: Apache-2.0
#include "train/core/ddp/parameter_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "kernels/base/error.h"
#include "nn/models/model.h"
#include "tests/data/support/message_of.h"
#include "train/core/config/group_option.h"

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

/// The last weights are a classifier, and the others' biases are vectors: SGD has them.
TEST(ParameterGroups, GiveMuonTheWeightsOfHiddenLayers) {
  const OptimizerSpec spec{.kind = OptimizerKind::muon, .momentum = 0.9, .dampening = 0.5, .muon_steps = 3};
  const ParameterGroups groups = parameter_groups(model(), spec);
  EXPECT_EQ(groups.of(0).options.kind, OptimizerKind::muon);
  EXPECT_EQ(groups.of(0).options.dampening, 0) << "Muon has none";
  for (const std::size_t other : {1u, 2u, 3u}) {
    EXPECT_EQ(groups.of(other).options.kind, OptimizerKind::sgd) << other;
    EXPECT_EQ(groups.of(other).options.momentum, 0.9) << other;
  }
}

TEST(ParameterGroups, GiveMuonWhatAGroupSays) {
  OptimizerSpec spec{.kind = OptimizerKind::muon,
                     .groups = {{.pattern = "*.bias", .kind = OptimizerKind::adam},
                                {.pattern = "b.weight", .kind = OptimizerKind::muon}}};
  EXPECT_THAT(parameter_groups(model(), spec).of_parameter, ElementsAre(0, 1, 0, 1));
  spec = {.kind = OptimizerKind::sgd,
          .momentum = 0.9,
          .dampening = 0.5,
          .groups = {{.pattern = "a.weight", .kind = OptimizerKind::muon, .nesterov = true}}};
  const ParameterGroups one = parameter_groups(model(), spec);
  EXPECT_THAT(one.of_parameter, ElementsAre(1, 0, 0, 0));
  EXPECT_TRUE(one.groups[1].options.nesterov) << "the run's dampening is SGD's alone";
}

TEST(ParameterGroups, MayTakeFromMuonWhatAnEarlierGroupGivesIt) {
  OptimizerSpec spec{.groups = {{.pattern = "*", .kind = OptimizerKind::muon},
                                {.pattern = "a.bias", .kind = OptimizerKind::sgd},
                                {.pattern = "b.bias", .frozen = true}}};
  const ParameterGroups groups = parameter_groups(model(), spec);
  EXPECT_EQ(groups.of(0).options.kind, OptimizerKind::muon);
  EXPECT_EQ(groups.of(1).options.kind, OptimizerKind::sgd);
  EXPECT_EQ(groups.of(2).options.kind, OptimizerKind::muon);
  EXPECT_TRUE(groups.of(3).frozen);
  spec.groups.pop_back();
  EXPECT_THAT(refusal(spec), HasSubstr("--group '*': optimizer=muon updates matrices, and b.bias has one dimension"));
}

TEST(ParameterGroups, AreCheckedTogether) {
  const OptimizerSpec momentum_first{
      .groups = {{.pattern = "a.*", .momentum = 0.9}, {.pattern = "a.*", .kind = OptimizerKind::sgd}}};
  EXPECT_EQ(parameter_groups(model(), momentum_first).of(0).options.momentum, 0.9);
  const OptimizerSpec nesterov_first{.kind = OptimizerKind::sgd,
                                     .groups = {{.pattern = "a.*", .nesterov = true},
                                                {.pattern = "a.weight", .momentum = 0.9},
                                                {.pattern = "a.bias", .momentum = 0.5}}};
  EXPECT_TRUE(parameter_groups(model(), nesterov_first).of(1).options.nesterov);
  const OptimizerSpec dropped{
      .kind = OptimizerKind::sgd,
      .groups = {{.pattern = "*", .momentum = 0.9}, {.pattern = "a.*", .kind = OptimizerKind::adam}}};
  EXPECT_EQ(parameter_groups(model(), dropped).of(0).options.momentum, 0);
  EXPECT_EQ(parameter_groups(model(), dropped).of(2).options.momentum, 0.9);
}

TEST(ParameterGroups, HaveAllFrozenParametersInOne) {
  const ParameterGroups groups = parameter_groups(
      model(),
      {.kind = OptimizerKind::muon,
       .groups = {{.pattern = "*.bias", .learning_rate = 1, .epochs = 2}, {.pattern = "b.*", .frozen = true}}});
  EXPECT_THAT(groups.of_parameter, ElementsAre(0, 1, 2, 2));
}

TEST(ParameterGroups, DropTheDecayOfMatricesThatAreNormalized) {
  const ParameterGroups groups =
      parameter_groups(model(), {.kind = OptimizerKind::muon, .muon_scale = MuonScale::normalize, .weight_decay = 0.1});
  EXPECT_EQ(groups.of(0).options.weight_decay, 0);
  EXPECT_EQ(groups.of(1).options.weight_decay, 0.1);
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
  EXPECT_THAT(refusal({.kind = OptimizerKind::muon, .groups = {{.pattern = "a.*", .frozen = true}}}),
              HasSubstr("--optimizer muon updates the weights of hidden layers, and none is trained"));
  EXPECT_THAT(refusal({.groups = {{.pattern = "a.*", .kind = OptimizerKind::muon}}}),
              HasSubstr("--group 'a.*': optimizer=muon updates matrices, and a.bias has one dimension"));
  EXPECT_THAT(refusal({.kind = OptimizerKind::muon, .groups = {{.pattern = "a.weight", .dampening = 0.1}}}),
              HasSubstr("dampening requires optimizer=sgd or sgdw"));
}

/// The values of --group in the first command of docs/parameter_groups.md.
std::vector<GroupOverride> documented_groups() {
  std::ifstream file(GRADRING_SOURCE_DIR "/docs/parameter_groups.md");
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = document.find("```sh");
  const std::string command = document.substr(begin, document.find("```\n", begin) - begin);
  constexpr std::string_view kOption = "--group '";
  std::vector<GroupOverride> groups;
  for (std::size_t at = command.find(kOption); at != std::string::npos; at = command.find(kOption, at)) {
    at += kOption.size();
    groups.push_back(parse_groups("group", command.substr(at, command.find('\'', at) - at)).at(0));
  }
  return groups;
}

TEST(ParameterGroups, OfTheDocumentsExampleHaveAllBatchNormalizationsOfResNet18) {
  const nn::Model resnet = nn::make_model("resnet18", {32, 32, 3}, 10);
  const std::vector<nn::Parameter> parameters = nn::parameters_of(resnet);
  const ParameterGroups groups =
      parameter_groups(parameters, {.kind = OptimizerKind::sgd, .weight_decay = 5e-4, .groups = documented_groups()});
  int normalizations = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string layer = parameters[i].name.substr(0, parameters[i].name.rfind('.'));
    const auto found = std::ranges::find(resnet.layers, layer, &nn::NamedLayer::name);
    ASSERT_NE(found, resnet.layers.end()) << layer;
    const bool normalizes = nn::kind_of(found->layer) == "batch_norm2d";
    normalizations += normalizes;
    EXPECT_EQ(groups.of(i).options.weight_decay, normalizes ? 0 : 5e-4) << parameters[i].name;
    EXPECT_EQ(groups.of(i).learning_rate.value_or(0), layer == "fc" ? 1 : 0) << parameters[i].name;
  }
  EXPECT_EQ(normalizations, 2 * 20);
}

}  // namespace
}  // namespace gradring::train
