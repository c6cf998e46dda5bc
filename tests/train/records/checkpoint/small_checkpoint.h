// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/train/records/checkpoint/tensors.h"
#include "train/records/checkpoint/checkpoint.h"

namespace gradring::train {

/// A checkpoint of a few hundred bytes that differs from step to step.
inline Checkpoint small_checkpoint(std::int64_t step, std::optional<double> score = std::nullopt) {
  Checkpoint checkpoint{
      .step = step,
      .model = {counting("fc.bias", TensorType::f32, {3}), counting("fc.weight", TensorType::f32, {3, 5})},
      .state = {counting("adam.m.fc.bias", TensorType::f32, {3}), counting("rng.counter", TensorType::u64, {})},
      .about = JsonValue::parse(R"({"loss_scale": 65536.0, "epoch": 1, "sampler": {"position": 320}})"),
      .score = score};
  for (auto* list : {&checkpoint.model, &checkpoint.state})
    for (TensorRecord& tensor : *list)
      for (std::byte& byte : tensor.bytes) byte ^= static_cast<std::byte>(step);
  return checkpoint;
}

inline void expect_equal(const Checkpoint& found, const Checkpoint& expected) {
  const auto by_name = [](std::vector<TensorRecord> list) {
    std::ranges::sort(list, {}, &TensorRecord::name);
    return list;
  };
  EXPECT_EQ(found.step, expected.step);
  EXPECT_EQ(by_name(found.model), by_name(expected.model));
  EXPECT_EQ(by_name(found.state), by_name(expected.state));
  EXPECT_EQ(found.about.text(), expected.about.text());
  EXPECT_EQ(found.score, expected.score);
}

}  // namespace gradring::train
