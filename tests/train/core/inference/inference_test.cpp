// SPDX-License-Identifier: Apache-2.0
#include "train/core/inference/inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "data/datasets/dataset.h"
#include "tests/support/safetensors.h"
#include "tests/train/support/host_arena.h"
#include "train/core/trainer/parameter_tensors.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

constexpr std::int64_t kSamples = 32;  // whose logits are stored

/// PyTorch's: images, and what the ConvNet of seed 0 makes of them.
class InferenceTest : public testing::Test {
 protected:
  data::InMemoryDataset images(std::int64_t count) const {
    auto pixels = golden_.at("images_u8").as<std::uint8_t>();
    pixels.resize(static_cast<std::size_t>(count) * 28 * 28);
    const auto labels = golden_.at("labels").as<std::int64_t>();
    const std::vector<std::int32_t> first(labels.begin(), labels.begin() + count);
    return data::InMemoryDataset(
        {.name = "golden", .shape = {28, 28, 1}, .classes = 10, .pixels = pixels, .labels = first});
  }
  std::vector<TensorRecord> weights() {
    arena_.draw(0);
    return save_parameters(arena_.parameters(), arena_.arena());
  }
  std::vector<float> logits(std::int64_t count) const {
    auto values = golden_.at("logits").as<float>();
    values.resize(static_cast<std::size_t>(count) * 10);
    return values;
  }
  static InferenceSpec spec(std::int64_t batch_size, kernels::DType precision = kernels::DType::f32) {
    return {.sample = {28, 28, 1}, .classes = 10, .batch_size = batch_size, .precision = precision};
  }

  const tests::StoredTensors golden_ = tests::read_golden("convnet_step_seed0");
  tests::HostArena arena_{nn::make_model("convnet", {28, 28, 1}, 10)};
  const Compute compute_ = make_compute({.device = "cpu"});
};

TEST_F(InferenceTest, GivesPyTorchsLogitsInOrderForAnyBatch) {
  for (const std::int64_t batch : {1, 5, 32, 250}) {
    Inference inference(spec(batch), weights(), "seed 0", compute_);
    for (const std::int64_t count : {kSamples, std::int64_t{1}}) {
      const auto result = inference.run(images(count));
      EXPECT_EQ(result.evaluation.samples, count);
      EXPECT_THAT(result.logits, Pointwise(testing::FloatNear(1e-5f), logits(count))) << "batches of " << batch;
    }
  }
}

TEST_F(InferenceTest, CountsWhatIsRight) {
  Inference inference(spec(7), weights(), "seed 0", compute_);
  const auto result = inference.run(images(kSamples));
  const auto labels = golden_.at("labels").as<std::int64_t>();
  std::int64_t correct = 0;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const auto row = result.logits.begin() + static_cast<std::ptrdiff_t>(10 * i);
    correct += std::max_element(row, row + 10) - row == labels[i];
  }
  EXPECT_EQ(result.evaluation.correct, correct);
  EXPECT_EQ(result.evaluation.accuracy, static_cast<double>(correct) / kSamples);
  EXPECT_NEAR(result.evaluation.loss, golden_.at("loss").as<float>()[0], 1e-5);
}

TEST_F(InferenceTest, RoundsInSixteenBits) {
  for (const auto& [precision, bound] : {std::pair{kernels::DType::f16, 0.005f}, {kernels::DType::bf16, 0.04f}}) {
    Inference inference(spec(32, precision), weights(), "seed 0", compute_);
    EXPECT_THAT(inference.run(images(kSamples)).logits, Pointwise(testing::FloatNear(bound), logits(kSamples)));
  }
}

TEST_F(InferenceTest, TakesOtherNamesAndRejectsOtherModels) {
  auto renamed = weights();
  for (TensorRecord& tensor : renamed) {
    const bool is_weight = tensor.name.ends_with("weight");
    const std::string layer = tensor.name.substr(0, tensor.name.rfind('.'));
    const std::string place = layer == "conv_layers.0"   ? "0"
                              : layer == "conv_layers.3" ? "3"
                              : layer == "fc_layers.0"   ? "7"
                                                         : "9";
    tensor.name = "module." + place + (is_weight ? ".weight" : ".bias");
  }
  Inference inference(spec(32), renamed, "theirs.pt", compute_);
  EXPECT_THAT(inference.run(images(kSamples)).logits, Pointwise(testing::FloatNear(1e-5f), logits(kSamples)));
  renamed.pop_back();
  EXPECT_THROW(Inference(spec(32), renamed, "theirs.pt", compute_), CheckpointError);
}

TEST(Probabilities, AreTheSoftmax) {
  EXPECT_THAT(probabilities_of(std::vector<float>{0, 0}), ElementsAre(0.5, 0.5));
  EXPECT_THAT(probabilities_of(std::vector<float>{1000, 0}), ElementsAre(1, DoubleNear(0, 1e-300)));
  const auto some = probabilities_of(std::vector<float>{1, 2, 3});
  EXPECT_NEAR(some[1] / some[0], std::exp(1), 1e-12);
  EXPECT_NEAR(std::accumulate(some.begin(), some.end(), 0.0), 1, 1e-12);
}

}  // namespace
}  // namespace gradring::train
