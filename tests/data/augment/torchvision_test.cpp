// SPDX-License-Identifier: Apache-2.0
// Against images that torchvision augmented (tests/golden/make_augmentation.py): equal bits, normalization included,
// but for rounding in mixtures.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "data/augment/augmentation.h"
#include "data/augment/lambdas.h"
#include "data/loader/batch_filler.h"
#include "kernels/host/host_device.h"
#include "tests/support/safetensors.h"

namespace gradring::data {
namespace {

struct Golden {
  const char* name;
  const char* augment;
  std::int64_t epoch;
  float error = 0;
};

class Torchvision : public ::testing::TestWithParam<Golden> {};

TEST_P(Torchvision, AugmentsAlike) {
  const tests::StoredTensors golden = tests::read_golden("augmentation");
  const std::string name = GetParam().name;
  const tests::StoredTensor& images = golden.at(name + ".images");
  const auto& shape = images.shape;
  const auto samples = static_cast<std::size_t>(shape[0]);
  std::vector<std::int32_t> labels(samples);
  std::iota(labels.begin(), labels.end(), 0);
  const InMemoryDataset dataset({.name = name,
                                 .shape = {shape[1], shape[2], shape[3]},
                                 .classes = static_cast<int>(samples),
                                 .pixels = images.as<std::uint8_t>(),
                                 .labels = std::move(labels)});
  std::vector<float> mean = {0.4914f, 0.4822f, 0.4465f}, std = {0.247f, 0.2435f, 0.2616f};
  for (auto* values : {&mean, &std}) values->resize(static_cast<std::size_t>(shape[3]));

  kernels::HostDevice device;
  const auto allocate = [&](std::size_t bytes) { return device.allocate(bytes, kernels::MemoryKind::pinned); };
  const auto elements = static_cast<std::size_t>(images.elements());
  BatchSlot slot{.images = allocate(elements * sizeof(float)),
                 .labels = allocate(samples * sizeof(std::int32_t)),
                 .labels_b = allocate(samples * sizeof(std::int32_t)),
                 .weights_b = allocate(samples * sizeof(float))};
  std::vector<std::int64_t> order(samples);
  std::iota(order.begin(), order.end(), 0);
  const Augmentation what = parse_augmentation(GetParam().augment);
  const auto lambdas = lambdas_of(what);
  const Normalize normalize({.mean = mean, .std = std}, shape[3]);
  BatchFiller filler(
      dataset, normalize,
      {.what = what, .seed = (std::uint64_t{1} << 40) + 7, .epoch = GetParam().epoch, .lambdas = lambdas});
  filler.fill(order, slot);
  const auto expected = golden.at(name + ".augmented").as<float>();
  for (std::size_t i = 0; i < elements; ++i) ASSERT_NEAR(slot.images.as<float>()[i], expected[i], GetParam().error);
  if (!what.mixes()) return;
  const auto partners = golden.at(name + ".partners").as<std::int64_t>();
  const auto weights = golden.at(name + ".weights").as<float>();
  for (std::size_t i = 0; i < samples; ++i) {
    EXPECT_EQ(slot.labels_b.as<std::int32_t>()[i], partners[i]);
    EXPECT_NEAR(slot.weights_b.as<float>()[i], weights[i], 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Torchvision,
    ::testing::Values(Golden{"crop", "crop=3,flip", 3}, Golden{"even", "crop=2,flip=alternating", 2},
                      Golden{"odd", "crop=2,flip=alternating", 3}, Golden{"resized", "resized-crop=0.08:1,flip", 1},
                      Golden{"cutout", "crop=1,flip,cutout=5", 5}, Golden{"mixup", "crop=1,flip,mixup=1", 2, 1e-6f},
                      Golden{"cutmix", "flip,cutmix=1", 4}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace gradring::data
