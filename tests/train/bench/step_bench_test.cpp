// SPDX-License-Identifier: Apache-2.0
#include "train/bench/step_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "data/datasets/dataset.h"
#include "kernels/base/error.h"
#include "kernels/host/host_device.h"
#include "nn/backend/cpu/cpu_backend.h"
#include "nn/backend/kernels/kernel_plans.h"

namespace gradring::train::bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr std::int64_t kSamples = 20;

/// Images that are easily told apart: class c is bright in row c.
data::InMemoryDataset stripes() {
  data::InMemoryDataset::Contents contents{
      .name = "stripes", .shape = {28, 28, 1}, .classes = 10, .pixels = {}, .labels = {}};
  contents.pixels.resize(static_cast<std::size_t>(kSamples) * 28 * 28);
  for (std::size_t i = 0; i < static_cast<std::size_t>(kSamples); ++i) {
    const std::size_t label = i % 10;
    contents.labels.push_back(static_cast<std::uint8_t>(label));
    std::fill_n(contents.pixels.begin() + static_cast<std::ptrdiff_t>((i * 28 + 2 * label) * 28), 3 * 28, 255);
  }
  return data::InMemoryDataset(std::move(contents));
}

TEST(PreparedBatches, AreTheFirstSamplesAgainAndAgain) {
  kernels::HostDevice device;
  const auto dataset = stripes();
  PreparedBatches batches(dataset, device, 8);
  const data::Batch& first = batches.next();
  EXPECT_EQ(first.shape(), kernels::Shape({8, 28, 28, 1}));
  EXPECT_EQ(first.labels()[7], 7);
  EXPECT_EQ(first.images()[0], 1.0f);
  EXPECT_EQ(first.images()[27 * 28], -1.0f);
  EXPECT_EQ(batches.next().labels()[0], 8);
  EXPECT_EQ(batches.next().labels()[0], 0);  // the four samples left over make no batch
  EXPECT_THROW(PreparedBatches(dataset, device, kSamples + 1), InvalidArgument);
  EXPECT_THROW(PreparedBatches(dataset, device, 0), InvalidArgument);
}

TEST(PreparedBatches, HaveColours) {
  kernels::HostDevice device;
  data::InMemoryDataset::Contents contents{
      .name = "red", .shape = {1, 2, 3}, .classes = 2, .pixels = {255, 0, 0, 255, 0, 0}, .labels = {1}};
  const data::InMemoryDataset dataset(std::move(contents));
  PreparedBatches batches(dataset, device, 1);
  EXPECT_THAT(batches.next().images(), ElementsAre(1, -1, -1, 1, -1, -1));
}

StepReport bench(nn::Backend& backend, kernels::Device& device, std::int64_t steps) {
  const auto dataset = stripes();
  StepBenchSpec spec;
  spec.batch_size = 10;
  spec.steps = steps;
  spec.warmup = 1;
  return bench_steps(std::array{spec}, {.device = device, .backend = backend, .dataset = dataset}).front();
}

TEST(StepBench, NamesEveryPartOnceAndLosesNoTime) {
  kernels::HostDevice device;
  nn::CpuBackend backend(device);
  const StepReport report = bench(backend, device, 3);
  std::vector<std::string> names;
  double sum = 0;
  for (const StepTimes::Part& part : report.times.parts) {
    names.push_back(part.name);
    sum += part.seconds.mean;
    EXPECT_EQ(part.seconds.count, 3u) << part.name;
  }
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  EXPECT_THAT(names, Contains(StartsWith("forward   conv2d 1->32")));
  EXPECT_THAT(names, Contains(StartsWith("backward  conv2d 32->64")));
  EXPECT_THAT(names, Contains("loss"));
  EXPECT_THAT(names, Contains("optimizer"));
  EXPECT_NEAR(sum, report.times.step.mean, 1e-9);
  EXPECT_GT(report.program.total(), 0u);
  EXPECT_EQ(report.segments, 1u);
  EXPECT_GE(report.resident.most_bytes, report.resident.now_bytes);
}

TEST(StepBench, TakesTurnsWithAProgramThatComputesActivationsTwice) {
  kernels::HostDevice device;
  nn::CpuBackend backend(device);
  const auto dataset = stripes();
  StepBenchSpec spec;
  spec.batch_size = 10;
  spec.steps = 3;
  spec.warmup = 1;
  StepBenchSpec cut = spec;
  cut.checkpointing = {.kind = nn::Checkpointing::Kind::segments, .segments = 3};
  const StepBenchParts parts{.device = device, .backend = backend, .dataset = dataset};
  const auto reports = bench_steps(std::array{spec, cut}, parts);
  const StepReport &whole = reports.at(0), &checkpointed = reports.at(1);
  EXPECT_EQ(checkpointed.loss, whole.loss);
  EXPECT_EQ(whole.times.step.count, 3u);
  EXPECT_EQ(checkpointed.times.step.count, 3u);
  EXPECT_GT(checkpointed.segments, 1u);
  EXPECT_LT(checkpointed.program.activations, whole.program.activations);
  EXPECT_EQ(checkpointed.program.activation_gradients, whole.program.activation_gradients);
  cut.steps = 2;
  EXPECT_THROW(bench_steps(std::array{spec, cut}, parts), InvalidArgument);
}

TEST(StepBench, NumbersPlansOfTheSameName) {
  kernels::HostDevice device;
  nn::ReferenceBackend backend(device);  // plans every layer alone
  const StepReport report = bench(backend, device, 1);
  std::vector<std::string> names;
  for (const StepTimes::Part& part : report.times.parts) names.push_back(part.name);
  EXPECT_THAT(names, Contains("forward   max_pool2d 2"));
  EXPECT_THAT(names, Contains("forward   max_pool2d 2 #2"));
}

TEST(StepBench, TrainsWhatItTimes) {
  kernels::HostDevice device;
  nn::CpuBackend backend(device);
  const double early = bench(backend, device, 1).loss;
  const double late = bench(backend, device, 30).loss;
  EXPECT_TRUE(std::isfinite(early));
  EXPECT_LT(late, early / 2);
}

}  // namespace
}  // namespace gradring::train::bench
