// SPDX-License-Identifier: Apache-2.0
#include "tests/train/support/batch_norm_steps.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/nn/support/program_rig.h"

namespace gradring::tests {
namespace {

void expect_close(const std::vector<std::vector<float>>& actual, const std::vector<std::vector<float>>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_LT(relative_error(actual[i], expected[i]), 1e-5) << i;
}

}  // namespace

const nn::ModelText kBatchNormModel("batch-norm", R"(
layers = [
  { conv2d = "conv1", out = 6, kernel = 3, stride = 2, bias = false },
  { batch_norm2d = "bn1" },
  { relu = "relu1" },
  { conv2d = "conv2", out = 6, kernel = 3, padding = 1, bias = false },
  { batch_norm2d = "bn2" },
  { add = "sum", inputs = ["bn2", "relu1"] },
  { relu = "relu2" },
  { batch_norm2d = "bn3", momentum = 0.5 },
  { global_avg_pool2d = "pool" },
  { flatten = "flatten" },
  { linear = "fc", out = "classes" },
]
)");

std::vector<std::vector<float>> running_statistics(train::Replica& replica) {
  const auto state = replica.save(Deadline::after(std::chrono::minutes(1)));
  std::vector<std::vector<float>> buffers;
  for (const train::TensorRecord& tensor : state.model)
    if (tensor.name.find("running") != tensor.name.npos) {
      const auto values = train::values_of(tensor).value();
      buffers.emplace_back(values.begin(), values.end());
    }
  return buffers;
}

TrainedSteps train_batch_norm(comm::ProcessGroup& group, const std::vector<std::int64_t>& samples,
                              RankRig::Options options) {
  options.model = kBatchNormModel;
  options.optimizer = {.kind = train::OptimizerKind::sgd};
  options.learning_rates.assign(TrainedSteps::kSteps, 0.01f);
  options.max_batch = TrainedSteps::kGlobalBatch;
  const auto dataset = golden_images();
  RankRig rig(group, *dataset, options);
  const std::int64_t first = std::accumulate(samples.begin(), samples.begin() + group.rank(), std::int64_t{0});
  TrainedSteps trained;
  for (int step = 0; step < TrainedSteps::kSteps; ++step) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(samples[static_cast<std::size_t>(group.rank())]));
    std::iota(indices.begin(), indices.end(), step * TrainedSteps::kGlobalBatch + first);
    trained.losses.push_back(rig.step(indices, TrainedSteps::kGlobalBatch).loss);
  }
  trained.weights = rig.weights();
  trained.buffers = running_statistics(rig.replica());
  return trained;
}

void expect_same_steps(const TrainedSteps& actual, const TrainedSteps& expected) {
  ASSERT_EQ(actual.losses.size(), expected.losses.size());
  for (std::size_t step = 0; step < expected.losses.size(); ++step)
    EXPECT_NEAR(actual.losses[step], expected.losses[step], 1e-6 * expected.losses[step]) << step;
  expect_close(actual.weights, expected.weights);
  expect_close(actual.buffers, expected.buffers);
}

}  // namespace gradring::tests
