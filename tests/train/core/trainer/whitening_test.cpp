// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/whitening.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <random>

#include "tests/nn/support/program_rig.h"
#include "tests/support/safetensors.h"
#include "tests/train/support/training_run.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

using tests::read_golden;

constexpr std::size_t kInputs = 12;  // of a patch of 2 x 2 pixels with 3 channels

/// The images of make_airbench94.py.
data::InMemoryDataset golden_photographs() {
  const auto golden = read_golden("airbench94_step_seed0");
  const auto labels = golden.at("labels").as<std::int64_t>();
  return data::InMemoryDataset({.name = "golden",
                                .shape = {32, 32, 3},
                                .classes = 10,
                                .pixels = golden.at("images_u8").as<std::uint8_t>(),
                                .labels = {labels.begin(), labels.end()}});
}

TEST(EigenOfSymmetric, DiagonalizesAMatrix) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{2}, kInputs, std::size_t{27}}) {
    std::mt19937 random(5);
    std::vector<double> matrix(n * n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j <= i; ++j)
        matrix[i * n + j] = matrix[j * n + i] = std::uniform_real_distribution<double>(-1, 1)(random);
    const Eigen eigen = eigen_of_symmetric(matrix, n);
    EXPECT_TRUE(std::ranges::is_sorted(eigen.values));
    for (std::size_t k = 0; k < n; ++k) {
      const double* const v = eigen.vectors.data() + k * n;
      for (std::size_t i = 0; i < n; ++i) {
        double product = 0;
        for (std::size_t j = 0; j < n; ++j) product += matrix[i * n + j] * v[j];
        EXPECT_NEAR(product, eigen.values[k] * v[i], 1e-13 * static_cast<double>(n)) << n;
      }
      for (std::size_t other = 0; other <= k; ++other) {
        double product = 0;
        for (std::size_t j = 0; j < n; ++j) product += v[j] * eigen.vectors[other * n + j];
        EXPECT_NEAR(product, other == k ? 1 : 0, 1e-13) << n;
      }
    }
  }
}

TEST(EigenOfSymmetric, TakesDiagonalAndSingularMatrices) {
  const double diagonal[] = {3, 0, 0, 0, -1, 0, 0, 0, 3};
  EXPECT_EQ(eigen_of_symmetric(diagonal, 3).values, std::vector<double>({-1, 3, 3}));
  const double ones[] = {1, 1, 1, 1};
  const Eigen eigen = eigen_of_symmetric(ones, 2);
  EXPECT_NEAR(eigen.values[0], 0, 1e-15);
  EXPECT_NEAR(eigen.values[1], 2, 1e-15);
}

/// Eigenvectors may have the other sign: then a filter is where its negative would be.
TEST(WhiteningFilters, AreThoseOfPyTorchUpToTheirSigns) {
  const std::vector<float> expected = read_golden("airbench94_step_seed0").at("whitening").as<float>();
  const std::vector<float> filters = whitening_filters(golden_photographs(), {}, {.kernel = 2});
  ASSERT_EQ(filters.size(), 2 * kInputs * kInputs);
  for (std::size_t i = 0; i < kInputs; ++i) {
    double product = 0;
    for (std::size_t j = 0; j < kInputs; ++j) product += double{filters[i * kInputs + j]} * expected[i * kInputs + j];
    const float sign = product < 0 ? -1.0f : 1.0f;
    for (std::size_t j = i * kInputs; j < (i + 1) * kInputs; ++j) {
      EXPECT_NEAR(sign * filters[j], expected[j], 1e-5 * std::fabs(expected[j]) + 1e-5) << i;
      EXPECT_EQ(filters[kInputs * kInputs + j], -filters[j]);
    }
  }
}

TEST(WhiteningFilters, TakeTheFirstImages) {
  const data::InMemoryDataset all = golden_photographs(), two = tests::head_of(all, 2);
  EXPECT_EQ(whitening_filters(all, {}, {.kernel = 2, .most_images = 2}), whitening_filters(two, {}, {.kernel = 2}));
  EXPECT_NE(whitening_filters(all, {}, {.kernel = 2}), whitening_filters(two, {}, {.kernel = 2}));
}

TEST(NewTraining, WhitensTheImagesOfRank0OnAllRanks) {
  const data::InMemoryDataset images = golden_photographs();
  TrainConfig config = tests::config_for(2, 3);
  config.model = "airbench94";
  const std::vector<float> filters = whitening_filters(images, {}, {.kernel = 2});
  std::mutex mutex;
  const tests::TrainingRun run = tests::train(2, config, images, images, [&](Trainer& trainer, int rank) {
    Replica& replica = trainer.replica();
    const kernels::Buffer drawn = replica.weights_on_host(Deadline::after(std::chrono::minutes(1)));
    trainer.begin_new();
    const kernels::Buffer begun = replica.weights_on_host(Deadline::after(std::chrono::minutes(1)));
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < replica.parameters().size(); ++i) {
      const nn::Parameter& parameter = replica.parameters()[i];
      const auto values_in = [&](const kernels::Buffer& host) {
        const nn::Arena arena = nn::weights_arena(replica.layout(), host.as<float>());
        std::vector<float> values(static_cast<std::size_t>(parameter.shape.elements()));
        nn::to_torch_order(parameter, {arena.parameter(static_cast<int>(i)), values.size()}, values);
        return values;
      };
      EXPECT_EQ(values_in(begun), i == 0 ? filters : values_in(drawn)) << parameter.name << " of rank " << rank;
    }
  });
  ASSERT_EQ(run.rank0.steps.size(), 2u);
  for (const StepRecord& step : run.rank0.steps) EXPECT_TRUE(std::isfinite(step.loss));
}

/// Their patches are multiples of one, so nothing but eps bounds most filters.
TEST(Whitening, RejectsImagesOfOneColour) {
  std::vector<std::uint8_t> pixels;
  for (const std::uint8_t grey : {0, 40, 255}) pixels.insert(pixels.end(), 6 * 6 * 3, grey);
  const data::InMemoryDataset images(
      {.name = "grey", .shape = {6, 6, 3}, .classes = 2, .pixels = std::move(pixels), .labels = {0, 1, 0}});
  EXPECT_THROW(whitening_filters(images, {}, {.kernel = 2}), UsageError);
}

}  // namespace
}  // namespace gradring::train
