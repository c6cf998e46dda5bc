// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/torch_optimizer_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "nn/models/model.h"
#include "tests/train/records/checkpoint/tensors.h"
#include "train/core/trainer/parameter_tensors.h"

namespace gradring::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Order = std::vector<std::size_t>;

/// In this order: conv weight, bias, conv weight, bias, linear weight, bias, linear weight, bias; all of different shapes.
const std::vector<nn::Parameter>& parameters() {
  static const std::vector<nn::Parameter> all = nn::parameters_of(nn::make_model("convnet", {28, 28, 1}, 10));
  return all;
}

/// The state of Adam whose parameters are those of `model` in `order`, in two groups.
TorchOptimizer adam(const Order& order, std::span<const nn::Parameter> model = parameters()) {
  const std::vector<TensorInfo> tensors = parameter_tensors(model);
  TorchOptimizer optimizer;
  optimizer.groups.resize(2);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    optimizer.groups[i < 3 ? 0 : 1].parameters.push_back(number);
    optimizer.state[number] = {counting("step", TensorType::f32, {}),
                               counting("exp_avg", TensorType::f32, tensors[order[i]].shape)};
  }
  return optimizer;
}

std::string why_refused(const TorchOptimizer& optimizer, std::span<const nn::Parameter> model = parameters()) {
  return refusal([&] { match_parameters(optimizer, model, "o.pt"); });
}

TEST(TorchOptimizerOrder, FollowsShapes) {
  for (const Order& order :
       {Order{0, 1, 2, 3, 4, 5, 6, 7}, Order{0, 2, 4, 6, 1, 3, 5, 7}, Order{1, 3, 5, 7, 0, 2, 4, 6},
        Order{7, 6, 5, 4, 3, 2, 1, 0}, Order{3, 0, 6, 1, 7, 2, 5, 4}})
    EXPECT_EQ(match_parameters(adam(order), parameters(), "o.pt"), order);
}

TEST(TorchOptimizerOrder, FollowsNamesRatherThanShapes) {
  TorchOptimizer optimizer = adam({0, 1, 2, 3, 4, 5, 6, 7});
  const Order order = {7, 6, 5, 4, 3, 2, 1, 0};
  for (std::size_t i = 0; i < order.size(); ++i)
    optimizer.groups[i < 3 ? 0 : 1].names.push_back(parameters()[order[i]].name);
  EXPECT_EQ(match_parameters(optimizer, parameters(), "o.pt"), order) << "the shapes are compared later";
  optimizer.groups[1].names.back() = "fc3.bias";
  EXPECT_THAT(why_refused(optimizer), HasSubstr("o.pt has the parameter 'fc3.bias', which the model lacks"));
  optimizer.groups[1].names.back() = optimizer.groups[1].names.front();
  EXPECT_THAT(why_refused(optimizer), HasSubstr("twice"));
}

TEST(TorchOptimizerOrder, GivesParametersWithoutStateTheRest) {
  TorchOptimizer optimizer = adam({7, 6, 5, 4, 3, 2, 1, 0});
  optimizer.state.erase(2);
  optimizer.state.erase(5);
  EXPECT_EQ(match_parameters(optimizer, parameters(), "o.pt"), (Order{7, 6, 2, 4, 3, 5, 1, 0}));
}

TEST(TorchOptimizerOrder, SaysWhatDiffers) {
  TorchOptimizer optimizer = adam({7, 6, 5, 4, 3, 2, 1, 0});
  optimizer.state[2][1] = counting("exp_avg", TensorType::f32, {77});
  EXPECT_THAT(why_refused(optimizer),
              HasSubstr("a state of shape [77] for parameter 2, and no parameter of the model"));
  EXPECT_THAT(why_refused(adam({7, 7, 5, 4, 3, 2, 1, 0})), HasSubstr("has two states of shape [10]"));
  EXPECT_THAT(why_refused(adam({0, 1})), HasSubstr("has 2 parameters, but the model has 8"));
}

TEST(TorchOptimizerOrder, RejectsAnOrderThatShapesDoNotTell) {
  std::vector<nn::Parameter> model = parameters();
  model[5] = model[3];  // two biases of one shape
  EXPECT_EQ(match_parameters(adam({0, 1, 2, 3, 4, 5, 6, 7}, model), model, "o.pt"), (Order{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_THAT(why_refused(adam({7, 6, 5, 4, 3, 2, 1, 0}, model), model),
              AllOf(HasSubstr("another order than the model, whose 2 parameters of shape [64] cannot be told apart"),
                    HasSubstr("save it with their names")));
}

}  // namespace
}  // namespace gradring::train
