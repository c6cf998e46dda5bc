// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/parameter_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/runtime/dtype.h"
#include "nn/models/model.h"
#include "tests/support/safetensors.h"
#include "tests/train/records/checkpoint/tensors.h"
#include "tests/train/support/host_arena.h"
#include "train/core/trainer/replica.h"

namespace gradring::train {
namespace {

using testing::HasSubstr;
using tests::HostArena;

const nn::Model& model() {
  static const nn::Model convnet = nn::make_model("convnet", {28, 28, 1}, 10);
  return convnet;
}

TEST(ParameterTensors, HavePyTorchsNamesShapesAndOrder) {
  HostArena arena(model());
  arena.draw(0);
  const auto golden = tests::read_golden("convnet_init_seed0");
  const auto records = save_parameters(arena.parameters(), arena.arena());
  ASSERT_EQ(records.size(), golden.size());
  for (const TensorRecord& record : records) {
    EXPECT_EQ(record.shape, golden.at(record.name).shape) << record.name;
    EXPECT_EQ(record.bytes, golden.at(record.name).bytes) << record.name;
  }
  EXPECT_EQ(records.front().name, "conv_layers.0.weight");
}

TEST(ParameterTensors, RoundTrip) {
  HostArena drawn(model()), loaded(model());
  drawn.draw(3);
  load_parameters(save_parameters(drawn.parameters(), drawn.arena()), "a", loaded.parameters(), loaded.arena());
  EXPECT_EQ(hash_weights(loaded.parameters(), loaded.arena()), hash_weights(drawn.parameters(), drawn.arena()));
}

TEST(ParameterTensors, LeavesOutParametersWithoutAName) {
  HostArena drawn(model()), loaded(model());
  drawn.draw(3);
  loaded.draw(4);
  std::vector<nn::Parameter> named(drawn.parameters().begin(), drawn.parameters().end());
  named.front().name.clear();
  const auto records = save_parameters(named, drawn.arena());
  EXPECT_EQ(records.size(), named.size() - 1);
  load_parameters(records, "a", named, loaded.arena());
  const auto saved = save_parameters(drawn.parameters(), drawn.arena());
  const auto read = save_parameters(loaded.parameters(), loaded.arena());
  EXPECT_NE(read.front().bytes, saved.front().bytes);
  for (std::size_t i = 1; i < saved.size(); ++i) EXPECT_EQ(read[i].bytes, saved[i].bytes) << saved[i].name;
  EXPECT_THAT(refusal([&] { load_parameters(records, "a", drawn.parameters(), loaded.arena()); }),
              HasSubstr("lacks 'conv_layers.0.weight'"));
}

TEST(ParameterTensors, ConvertsFloatingPointTypes) {
  HostArena arena(model());
  auto records = save_parameters(arena.parameters(), arena.arena());
  TensorRecord& bias = records.back();  // fc_layers.2.bias
  const auto first_after = [&](TensorType type, auto value) {
    bias.type = type;
    bias.bytes = bytes_in(std::vector<decltype(value)>(10, value));
    load_parameters(records, "a", arena.parameters(), arena.arena());
    return arena.arena().parameter(static_cast<int>(records.size()) - 1)[9];
  };
  EXPECT_EQ(first_after(TensorType::f16, kernels::to_half(0.1f)), kernels::to_float(kernels::to_half(0.1f)));
  EXPECT_EQ(first_after(TensorType::bf16, kernels::to_bfloat16(0.1f)), kernels::to_float(kernels::to_bfloat16(0.1f)));
  EXPECT_EQ(first_after(TensorType::f64, 0.1), 0.1f);
  EXPECT_THAT(refusal([&] { first_after(TensorType::i32, 1); }), HasSubstr("'fc_layers.2.bias' of type I32"));
}

TEST(ParameterTensors, RejectsAnotherModelWithoutWriting) {
  HostArena small(nn::make_model("convnet", {20, 20, 1}, 7)), arena(model());
  arena.draw(0);
  const auto before = hash_weights(arena.parameters(), arena.arena());
  auto records = save_parameters(small.parameters(), small.arena());
  records[0].name = "extra";
  const std::string why = refusal([&] { load_parameters(records, "a.pt", arena.parameters(), arena.arena()); });
  EXPECT_THAT(why, HasSubstr("a.pt lacks 'conv_layers.0.weight'"));
  EXPECT_THAT(why, HasSubstr("has 'extra', which the model lacks"));
  EXPECT_THAT(why, HasSubstr("'fc_layers.2.bias' of shape [7], expected [10]"));
  EXPECT_EQ(hash_weights(arena.parameters(), arena.arena()), before);
}

}  // namespace
}  // namespace gradring::train
