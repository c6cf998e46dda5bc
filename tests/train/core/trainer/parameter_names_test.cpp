// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/parameter_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/models/model.h"
#include "tests/train/records/checkpoint/tensors.h"

namespace gradring::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const nn::Model& convnet() {
  static const nn::Model model = nn::make_model("convnet", {28, 28, 1}, 10);
  return model;
}

TEST(ParameterNames, MapsEverySpelling) {
  const ParameterNames names(convnet());
  const std::pair<const char*, const char*> cases[] = {
      {"conv_layers.0.weight", "conv_layers.0.weight"},
      {"conv1.weight", "conv_layers.0.weight"},
      {"conv2.bias", "conv_layers.3.bias"},
      {"fc1.weight", "fc_layers.0.weight"},
      {"fc2.bias", "fc_layers.2.bias"},
      {"0.weight", "conv_layers.0.weight"},
      {"3.bias", "conv_layers.3.bias"},
      {"7.weight", "fc_layers.0.weight"},
      {"9.bias", "fc_layers.2.bias"},
      {"module.conv1.weight", "conv_layers.0.weight"},
      {"module.9.bias", "fc_layers.2.bias"},
      {"_orig_mod.module.fc1.bias", "fc_layers.0.bias"},
      {"module._orig_mod.conv_layers.3.weight", "conv_layers.3.weight"},
  };
  for (const auto& [spelling, own] : cases) EXPECT_EQ(names.own(spelling), own) << spelling;
  for (const char* other : {"", "conv0.weight", "conv3.weight", "1.weight", "conv1", "conv1.weight ", "xconv1.weight",
                            "conv1.running_mean", "modulo.conv1.weight"})
    EXPECT_EQ(names.own(other), std::nullopt) << other;
}

/// Else two convolutions of one shape would silently exchange their weights.
TEST(ParameterNames, PrefersTheNamesOfTheModel) {
  const nn::Model model = nn::read_model({"net.toml", R"(layers = [
      { conv2d = "conv2", out = 3, kernel = 3, padding = 1 },
      { conv2d = "conv1", out = 3, kernel = 3, padding = 1 },
      { conv2d = "0", out = 3, kernel = 3, padding = 1 },
      { flatten = "flatten" },
      { linear = "fc", out = "classes" },
  ])"},
                                         {8, 8, 3}, 10);
  const ParameterNames names(model);
  for (const nn::Parameter& parameter : nn::parameters_of(model)) EXPECT_EQ(names.own(parameter.name), parameter.name);
  EXPECT_EQ(names.own("conv3.weight"), "0.weight");
}

TEST(ParameterNames, RejectsOneParameterUnderTwoNames) {
  std::vector<TensorRecord> tensors = {counting("conv1.bias", TensorType::f32, {32}),
                                       counting("optimizer.step", TensorType::i64, {}),
                                       counting("module.0.bias", TensorType::f32, {32})};
  EXPECT_THAT(refusal([&] { ParameterNames(convnet()).rename(tensors, "a.pt"); }),
              HasSubstr("'conv_layers.0.bias' twice, as 'conv1.bias' and as 'module.0.bias'"));
  tensors.pop_back();
  ParameterNames(convnet()).rename(tensors, "a.pt");
  EXPECT_EQ(tensors[0].name, "conv_layers.0.bias");
  EXPECT_EQ(tensors[1].name, "optimizer.step");
}

/// The names and the remarks after `names` were renamed.
struct Renamed {
  std::vector<std::string> names, remarks;
};

Renamed renamed(const std::vector<std::string>& names) {
  std::vector<TensorRecord> tensors;
  for (const std::string& name : names) tensors.push_back(counting(name, TensorType::f32, {1}));
  Renamed result{.names = {}, .remarks = ParameterNames(convnet()).rename(tensors, "a.pt")};
  for (const TensorRecord& tensor : tensors) result.names.push_back(tensor.name);
  return result;
}

TEST(ParameterNames, StripsAnyCommonPrefixWithARemark) {
  const std::pair<const char*, const char*> prefixes[] = {
      {"module.", "module."},
      {"_orig_mod.", "_orig_mod."},
      {"module._orig_mod.", "module._orig_mod."},
      {"model.", "model."},
      {"net.", "net."},
      {"ema.", "ema."},
      {"module.model._orig_mod.", "module.model._orig_mod."},
      {"a.b.c.d.", "a.b.c.d."},
      {"3.", "3."},
  };
  for (const auto& [prefix, stripped] : prefixes) {
    const auto with = [prefix = std::string(prefix)](const std::string& name) { return prefix + name; };
    const Renamed result = renamed({with("conv1.weight"), with("conv_layers.0.bias"), with("9.bias")});
    EXPECT_THAT(result.names, ElementsAre("conv_layers.0.weight", "conv_layers.0.bias", "fc_layers.2.bias")) << prefix;
    EXPECT_THAT(result.remarks,
                ElementsAre(HasSubstr("a.pt: stripped '" + std::string(stripped) + "' from the names")));
  }
  EXPECT_THAT(renamed({"conv1.weight", "9.bias"}).remarks, IsEmpty());
}

TEST(ParameterNames, StripsWrappersOfInnerModules) {
  const Renamed result =
      renamed({"_fsdp_wrapped_module.conv1._checkpoint_wrapped_module.weight", "fc1._orig_mod.bias"});
  EXPECT_THAT(result.names, ElementsAre("conv_layers.0.weight", "fc_layers.0.bias"));
  EXPECT_THAT(result.remarks,
              ElementsAre(testing::AllOf(HasSubstr("_checkpoint_wrapped_module."), HasSubstr("'_orig_mod.'"))));
}

TEST(ParameterNames, KeepsPrefixesThatLeaveUnknownNames) {
  for (const std::vector<std::string>& names : {std::vector<std::string>{"model.conv1.weight", "ema.conv1.bias"},
                                                {"model.conv1.weight", "model.bn1.weight"},
                                                {"model.conv1.weight", "conv1.bias"}}) {
    const Renamed result = renamed(names);
    EXPECT_EQ(result.names.front(), names.front());
    EXPECT_THAT(result.remarks, IsEmpty());
  }
}

TEST(ParameterNames, IgnoresTheCounterOfAveragedModels) {
  for (const std::vector<std::string>& names : {std::vector<std::string>{"n_averaged", "module.conv1.weight"},
                                                {"n_averaged", "module.net.conv1.weight"},
                                                {"ema.n_averaged", "ema.module.conv1.weight"}}) {
    const Renamed result = renamed(names);
    EXPECT_THAT(result.names, ElementsAre("conv_layers.0.weight"));
    EXPECT_THAT(result.remarks, ElementsAre(HasSubstr("stripped"), HasSubstr("ignored 'n_averaged'")));
  }
}

/// A hostile file: many components must not take time without bound.
TEST(ParameterNames, TriesFewPrefixes) {
  std::string name;
  for (int i = 0; i < 500'000; ++i) name += "a.";
  const std::vector<std::string> names(20, name + "weight");
  EXPECT_EQ(renamed(names).names, names);
}

TEST(ParameterNames, RenamesTheParametersOfAnOptimizer) {
  TorchOptimizer optimizer;
  optimizer.groups = {{{}, {0, 1}, {"module.conv1.weight", "module.fc2.bias"}}, {{}, {2}, {"module.other"}}};
  ParameterNames(convnet()).rename(optimizer);
  EXPECT_THAT(optimizer.groups[0].names, ElementsAre("conv_layers.0.weight", "fc_layers.2.bias"));
  EXPECT_THAT(optimizer.groups[1].names, ElementsAre("module.other"));
}

}  // namespace
}  // namespace gradring::train
