// SPDX-License-Identifier: Apache-2.0
// One process with several devices beside the same batch on one device, and on as many ranks.
#include "train/core/data_parallel/data_parallel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "data/datasets/open_dataset.h"
#include "tests/nn/support/program_rig.h"
#include "tests/train/support/rank_rig.h"

namespace gradring::tests {
namespace {

using Tensors = std::vector<std::vector<float>>;

struct Trained {
  std::vector<double> losses;
  Tensors first_gradients;
  Tensors weights;
};

/// How a batch is split.
struct Split {
  int ranks = 1;
  int devices = 1;
  std::int64_t batch = 64;  ///< of a step
  std::int64_t passes = 1;  ///< of a step
  train::OptimizerKind optimizer = train::OptimizerKind::adam;
  float learning_rate = 1e-3f;
  kernels::DType precision = kernels::DType::f32;
};

Trained train(const Split& split, int steps) {
  const auto dataset = data::open_dataset("digits", data::Split::train, "");
  Trained trained;
  run_ranks(split.ranks, [&](comm::ProcessGroup& group) {
    const std::int64_t share = split.batch / split.ranks;
    RankRig::Options options;
    options.max_batch = (share + split.passes - 1) / split.passes;
    options.accumulates = split.passes > 1;
    options.devices = split.devices;
    options.optimizer.kind = split.optimizer;
    options.learning_rates = {split.learning_rate};
    options.precision = split.precision;
    RankRig rig(group, *dataset, options);
    for (int step = 0; step < steps; ++step) {
      std::vector<std::int64_t> indices;
      for (std::int64_t i = 0; i < share; ++i) indices.push_back(step * split.batch + i * split.ranks + group.rank());
      const double loss = rig.step(indices, split.batch).loss;
      const Tensors gradients = rig.gradients();
      if (group.rank() != 0) continue;
      trained.losses.push_back(loss);
      if (step == 0) trained.first_gradients = gradients;
    }
    const Tensors weights = rig.weights();
    if (group.rank() == 0) trained.weights = weights;
  });
  return trained;
}

void expect_alike(const Tensors& actual, const Tensors& expected, double bound) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_LT(relative_error(actual[i], expected[i]), bound) << "tensor " << i;
}

/// Another order of sums: the f32 gradients of the ConvNet differ by far less than this.
constexpr double kGradientBound = 1e-5;

TEST(DataParallel, GradientsEqualThoseOfDistributedDataParallel) {
  for (const int devices : {2, 4}) {
    SCOPED_TRACE(std::to_string(devices) + " devices");
    const Trained ranks = train({.ranks = devices}, 1);
    const Trained one_process = train({.devices = devices}, 1);
    expect_alike(one_process.first_gradients, ranks.first_gradients, kGradientBound);
    EXPECT_NEAR(one_process.losses[0], ranks.losses[0], 1e-5);
  }
}

TEST(DataParallel, BatchesThatDoNotDivideEvenlyGiveTheGradientsOfOneDevice) {
  // 61 samples on 3 devices: 21, 21 and 19. 5 on 4: 2, 2, 1 and none, as torch.chunk.
  for (const auto& [batch, devices] : {std::pair{61, 3}, std::pair{5, 4}, std::pair{1, 2}}) {
    SCOPED_TRACE(std::to_string(batch) + " samples, " + std::to_string(devices) + " devices");
    const Trained one = train({.batch = batch}, 2);
    const Trained several = train({.devices = devices, .batch = batch}, 2);
    expect_alike(several.first_gradients, one.first_gradients, kGradientBound);
    EXPECT_NEAR(several.losses[1], one.losses[1], 1e-4);
  }
}

TEST(DataParallel, AccumulatedPassesGiveTheGradientsOfOneDevice) {
  const Trained one = train({}, 1);
  expect_alike(train({.devices = 2, .passes = 3}, 1).first_gradients, one.first_gradients, kGradientBound);
}

TEST(DataParallel, HalfPrecisionGivesTheGradientsOfOneDeviceUpToItsRoundings) {
  const Trained one = train({.precision = kernels::DType::f16}, 1);
  // A gradient is a sum of products in f16, whose unit roundoff is 2^-11.
  expect_alike(train({.devices = 2, .precision = kernels::DType::f16}, 1).first_gradients, one.first_gradients,
               0x1p-11);
}

/// SGD moves weights by the learning rate times the gradient, so with a rate of 0.05 the errors of 20 steps add to
/// about that of one gradient. Adam divides by the gradient's size: where that is near 0, a rounding may turn a step of
/// 1e-3 around.
TEST(DataParallel, WeightsAfterTwentyStepsAreThoseOfOneDevice) {
  constexpr int kSteps = 20;
  for (const auto& [optimizer, rate, bound] : {std::tuple{train::OptimizerKind::sgd, 0.05f, kGradientBound},
                                               std::tuple{train::OptimizerKind::adam, 1e-3f, 1e-3}}) {
    SCOPED_TRACE(word_of(optimizer));
    const Trained one = train({.optimizer = optimizer, .learning_rate = rate}, kSteps);
    const Trained two = train({.devices = 2, .optimizer = optimizer, .learning_rate = rate}, kSteps);
    EXPECT_LT(one.losses.back(), one.losses.front()) << "it must learn, or agreement means nothing";
    expect_alike(two.weights, one.weights, bound);
    for (int step = 0; step < kSteps; ++step) EXPECT_NEAR(two.losses[step], one.losses[step], 1e-4) << "step " << step;
  }
}

TEST(DataParallel, RepeatsItsBits) {
  const Trained once = train({.devices = 3}, 3);
  EXPECT_EQ(train({.devices = 3}, 3).weights, once.weights);
}

TEST(DataParallel, SplitsAsTorchChunk) {
  EXPECT_EQ(train::samples_of_device(64, 2), 32);
  EXPECT_EQ(train::samples_of_device(61, 3), 21);
  EXPECT_EQ(train::samples_of_device(1, 4), 1);
}

}  // namespace
}  // namespace gradring::tests
