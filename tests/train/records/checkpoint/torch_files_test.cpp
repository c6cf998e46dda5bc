// SPDX-License-Identifier: Apache-2.0
// Files that torch.save of PyTorch 2.15 wrote: layouts that Debian's PyTorch, which torch_test.cpp uses, does not have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/records/checkpoint/tensors.h"
#include "train/records/checkpoint/tensor_file.h"
#include "train/records/checkpoint/torch_optimizer.h"

namespace gradring::train {
namespace {

using testing::ElementsAre;

std::filesystem::path torch_file(const std::string& name) {
  return std::filesystem::path(GRADRING_PT_CORPUS) / ("torch_" + name);
}

std::vector<TensorRecord> tensors_of(const std::string& name) {
  PosixFileSystem files;
  return read_tensor_file(files, torch_file(name));
}

TorchOptimizer optimizer_of(const std::string& name) {
  PosixFileSystem files;
  return read_torch_optimizer(files, torch_file(name));
}

const TorchOptimizer::Value* option_of(const TorchOptimizer::Group& group, const std::string& name) {
  for (const auto& [option, value] : group.options)
    if (option == name) return &value;
  return nullptr;
}

/// torch.nn.Linear(2, 1): the weights 1 and 2, the bias 3.
TEST(TorchFiles215, HoldALinearLayer) {
  const std::vector<TensorRecord> linear = {tensor<float>("weight", TensorType::f32, {1, 2}, {1, 2}),
                                            tensor<float>("bias", TensorType::f32, {1}, {3})};
  EXPECT_EQ(tensors_of("no_crc"), linear);
  EXPECT_EQ(tensors_of("legacy"), linear);
  EXPECT_EQ(tensors_of("wrapped_other"), linear) << "the only state_dict, beside values of other kinds";
  EXPECT_EQ(tensors_of("attributes").at(0), linear[0]);
  EXPECT_EQ(tensors_of("attributes").at(1), tensor<float>("bias", TensorType::f32, {2}, {1, 2}));
  const auto averaged = tensors_of("averaged");
  ASSERT_EQ(averaged.size(), 3u);
  EXPECT_EQ(averaged[0], tensor<std::int64_t>("n_averaged", TensorType::i64, {}, {0}));
  EXPECT_EQ(averaged[1].name, "module.weight");
}

TEST(TorchFiles215, HoldTypesWithoutATypedStorage) {
  EXPECT_THAT(tensors_of("untyped_storages"),
              ElementsAre(tensor<std::uint16_t>("a", TensorType::u16, {3}, {0, 1, 2}),
                          tensor<std::uint8_t>("b", TensorType::f8_e5m2, {2}, {0x3c, 0x40})));
}

TEST(TorchFiles215, HoldExpandedNegatedAndConjugatedViews) {
  EXPECT_THAT(tensors_of("views"), ElementsAre(tensor<float>("zero", TensorType::f32, {2, 3}, {7, 7, 7, 7, 7, 7}),
                                               tensor<float>("neg", TensorType::f32, {2}, {-2, 4}),
                                               tensor<float>("conj", TensorType::c64, {1}, {1, -2})));
}

TEST(TorchFiles215, HoldOptimizersWithNamesAndTensorRates) {
  const TorchOptimizer adam = optimizer_of("optimizer_named");
  ASSERT_EQ(adam.groups.size(), 2u);
  EXPECT_THAT(adam.groups[0].names, ElementsAre("bias"));
  EXPECT_THAT(adam.groups[1].names, ElementsAre("weight"));
  EXPECT_EQ(to_string(*option_of(adam.groups[0], "lr")), "0.01");
  EXPECT_EQ(to_string(*option_of(adam.groups[0], "betas")), "(0.9, 0.999)");
  EXPECT_EQ(adam.state.at(1).at(1), tensor<float>("exp_avg", TensorType::f32, {1, 2}, {0.1f, 0.1f}));
}

TEST(TorchFiles215, HoldOptimizersOfOtherTools) {
  const TorchOptimizer wrapped = optimizer_of("optimizer_groups");  // as Lightning wraps it
  ASSERT_EQ(wrapped.groups.size(), 2u);
  EXPECT_EQ(option_of(wrapped.groups[0], "name"), nullptr) << "options of scripts are skipped";
  EXPECT_EQ(to_string(*option_of(wrapped.groups[0], "lr")), "0.1");
  EXPECT_EQ(wrapped.state.at(0).at(0), tensor<float>("momentum_buffer", TensorType::f32, {1}, {1}));

  const TorchOptimizer by_name = optimizer_of("optimizer_by_name");  // torch.distributed.checkpoint
  EXPECT_THAT(by_name.groups.at(0).names, ElementsAre("weight", "bias"));
  EXPECT_THAT(by_name.groups.at(0).parameters, ElementsAre(0, 1));
  EXPECT_EQ(by_name.state.at(0).at(0).shape, (std::vector<std::int64_t>{1, 2}));
}

}  // namespace
}  // namespace gradring::train
