// SPDX-License-Identifier: Apache-2.0
// Against images that torchvision augmented (tests/golden/make_augmentation.py): equal bits, normalization included.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "data/augment/augmentation.h"
#include "data/loader/loader.h"
#include "kernels/host/host_device.h"
#include "tests/support/safetensors.h"

namespace gradring::data {
namespace {

struct Golden {
  const char* name;
  const char* augment;
  std::int64_t epoch;
};

class Torchvision : public ::testing::TestWithParam<Golden> {};

TEST_P(Torchvision, AugmentsToTheSameBits) {
  const tests::StoredTensors golden = tests::read_golden("augmentation");
  const std::string name = GetParam().name;
  const tests::StoredTensor& images = golden.at(name + ".images");
  const auto& shape = images.shape;
  const auto samples = static_cast<std::size_t>(shape[0]);
  const InMemoryDataset dataset({.name = name,
                                 .shape = {shape[1], shape[2], shape[3]},
                                 .classes = 1,
                                 .pixels = images.as<std::uint8_t>(),
                                 .labels = std::vector<std::uint8_t>(samples)});
  std::vector<float> mean = {0.4914f, 0.4822f, 0.4465f}, std = {0.247f, 0.2435f, 0.2616f};
  for (auto* values : {&mean, &std}) values->resize(static_cast<std::size_t>(shape[3]));

  kernels::HostDevice device;
  using kernels::MemoryKind;
  BatchSlot slot{
      .images = device.allocate(static_cast<std::size_t>(images.elements()) * sizeof(float), MemoryKind::pinned),
      .labels = device.allocate(samples * sizeof(std::int32_t), MemoryKind::pinned)};
  std::vector<std::int64_t> order(samples);
  std::iota(order.begin(), order.end(), 0);
  fill_batch(dataset, Normalize({.mean = mean, .std = std}, shape[3]), order, slot, {},
             {.what = parse_augmentation(GetParam().augment),
              .seed = (std::uint64_t{1} << 40) + 7,
              .epoch = GetParam().epoch});
  const std::span augmented(slot.images.as<float>(), static_cast<std::size_t>(images.elements()));
  EXPECT_EQ(std::vector(augmented.begin(), augmented.end()), golden.at(name + ".augmented").as<float>());
}

INSTANTIATE_TEST_SUITE_P(Cases, Torchvision,
                         ::testing::Values(Golden{"crop", "crop=3,flip", 3},
                                           Golden{"even", "crop=2,flip=alternating", 2},
                                           Golden{"odd", "crop=2,flip=alternating", 3},
                                           Golden{"resized", "resized-crop=0.08:1,flip", 1},
                                           Golden{"cutout", "crop=1,flip,cutout=5", 5}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace gradring::data
