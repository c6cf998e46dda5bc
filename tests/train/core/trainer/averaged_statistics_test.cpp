// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/averaged_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/safetensors.h"
#include "tests/train/support/rank_rig.h"

namespace gradring::tests {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr const char* kModel = R"(
layers = [
  { conv2d = "conv0", out = 4, kernel = 3, bias = false },
  { batch_norm2d = "bn0" },
  { relu = "relu0" },
  { conv2d = "conv1", out = 5, kernel = 3, bias = false },
  { batch_norm2d = "bn1", momentum = 0.4 },
  { global_avg_pool2d = "pool" },
  { flatten = "flatten" },
  { linear = "fc", out = "classes" },
])";

class AveragedStatistics : public ::testing::Test {
 protected:
  std::vector<train::TensorRecord> weights() const {
    std::vector<train::TensorRecord> records;
    for (const auto& [name, tensor] : golden_)
      if (name.starts_with("weight."))
        records.push_back({{.name = name.substr(7), .shape = tensor.shape}, tensor.bytes});
    for (const char* layer : {"bn0", "bn1"})
      for (const char* buffer : {"running_mean", "running_var"}) {
        const std::string name = std::string(layer) + "." + buffer;
        train::TensorRecord record{{.name = name, .shape = golden_.at("world_1." + name).shape},
                                   golden_.at("world_1." + name).bytes};
        std::ranges::fill(record.bytes, std::byte{0x3f});  // another value
        records.push_back(std::move(record));
      }
    return records;
  }
  static std::vector<float> values_of(const train::TensorRecord& record) {
    return StoredTensor{.dtype = "F32", .shape = record.shape, .bytes = record.bytes}.as<float>();
  }

  const kernels::KernelSet kernels_ = kernels::kernel_set();
  const StoredTensors golden_ = read_golden("averaged_statistics");
  const data::InMemoryDataset images_{{.name = "golden",
                                       .shape = {6, 6, 2},
                                       .classes = 3,
                                       .pixels = golden_.at("images_u8").as<std::uint8_t>(),
                                       .labels = std::vector<std::int32_t>(13)}};
};

/// update_bn ignores the momentum, and runs dropout as in training: here it comes after the last statistics.
constexpr const char* kWithoutMomentumWithDropout = R"(
layers = [
  { conv2d = "conv0", out = 4, kernel = 3, bias = false },
  { batch_norm2d = "bn0", momentum = 1e-6 },
  { relu = "relu0" },
  { conv2d = "conv1", out = 5, kernel = 3, bias = false },
  { batch_norm2d = "bn1", momentum = 0 },
  { global_avg_pool2d = "pool" },
  { flatten = "flatten" },
  { dropout = "drop", p = 0.5 },
  { linear = "fc", out = "classes" },
])";

TEST_F(AveragedStatistics, AreThoseOfPyTorchsUpdateBn) {
  for (const int world : {1, 2})
    for (const char* model : {kModel, kWithoutMomentumWithDropout})
      run_ranks(world, [&](comm::ProcessGroup& group) {
        RankRig rig(group, images_, {.model = {"net.toml", model}, .max_batch = 5, .recorded = model == kModel});
        const Deadline deadline = group.after_collectives();
        train::Replica& replica = rig.replica();
        replica.load_weights(weights(), "golden", deadline);
        const std::vector<train::TensorRecord> before = replica.save(deadline).model;
        train::AveragedStatistics statistics({.train_set = images_, .kernels = kernels_, .group = group}, replica);
        EXPECT_TRUE(statistics.records().empty());
        statistics.compute(replica.whole_weights().view);
        EXPECT_EQ(replica.save(deadline).model, before) << "the model's own stay";
        const auto records = statistics.records();
        EXPECT_EQ(records.size(), group.rank() == 0 ? 4u : 0u);
        for (const train::TensorRecord& record : records) {
          ASSERT_TRUE(record.name.starts_with("ema."));
          const std::string name = "world_" + std::to_string(world) + "." + record.name.substr(4);
          EXPECT_THAT(values_of(record), Pointwise(FloatNear(2e-6f), golden_.at(name).as<float>())) << name;
        }
        statistics.exchange();
        EXPECT_EQ(replica.save(deadline).model == before, group.rank() != 0);
        statistics.exchange();
        EXPECT_EQ(replica.save(deadline).model, before);
      });
}

TEST_F(AveragedStatistics, AreComputedAlikeWhereRanksNormalizeTogether) {
  run_ranks(2, [&](comm::ProcessGroup& group) {
    RankRig rig(group, images_, {.model = {"net.toml", kModel}, .max_batch = 5, .sync_batch_norm = true});
    train::AveragedStatistics statistics({.train_set = images_, .kernels = kernels_, .group = group}, rig.replica());
    statistics.compute(rig.replica().whole_weights().view);
    EXPECT_EQ(statistics.records().size(), group.rank() == 0 ? 4u : 0u);
  });
}

TEST_F(AveragedStatistics, AreLeftOutOfAResumedState) {
  std::vector<train::TensorRecord> state(3);
  state[0].name = "ema.conv0.weight";
  state[1].name = "ema.bn0.running_mean";
  state[2].name = "momentum.bn0.weight";
  train::remove_averaged_statistics(state, nn::buffers_of(nn::make_model({"net.toml", kModel}, {6, 6, 2}, 3)));
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(state[1].name, "momentum.bn0.weight");
}

}  // namespace
}  // namespace gradring::tests
