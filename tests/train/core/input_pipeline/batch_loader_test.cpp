// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "data/datasets/dataset.h"
#include "data/loader/sampler.h"
#include "kernels/base/error.h"
#include "kernels/host/host_device.h"
#include "kernels/ops/gather_batch/draws.h"
#include "train/core/input_pipeline/batch_loader.h"

namespace gradring::tests {
namespace {

using kernels::DType;

Deadline soon() { return Deadline::after(std::chrono::seconds(30)); }

data::InMemoryDataset colours(std::int64_t samples) {
  data::InMemoryDataset::Contents contents{
      .name = "colours", .shape = {3, 5, 3}, .classes = 7, .pixels = {}, .labels = {}};
  for (std::int64_t i = 0; i < samples * 45; ++i) contents.pixels.push_back(static_cast<std::uint8_t>(i * 37 % 256));
  for (std::int64_t i = 0; i < samples; ++i) contents.labels.push_back(static_cast<std::uint8_t>(i % 7));
  return data::InMemoryDataset(std::move(contents));
}

/// The batches of two epochs, the second of which begins at `first`: images and labels, as bytes.
std::vector<std::vector<std::byte>> batches_of(train::BatchLoader& loader, kernels::Device& device,
                                               std::size_t image_bytes, const std::vector<std::int64_t>& order,
                                               std::int64_t first, const std::vector<std::int64_t>& visits = {}) {
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  std::vector<std::vector<std::byte>> batches;
  for (std::int64_t epoch : {0, 1}) {
    std::int64_t position = epoch == 0 ? 0 : first;
    loader.begin_epoch(*stream, {.number = epoch, .order = order, .position = position, .visits = visits});
    while (const auto next = loader.next(soon())) {
      EXPECT_EQ(next->position, position);
      position += next->count;
      loader.enqueue_copies(*stream);
      loader.enqueue_preparation(*stream, next->count);
      stream->synchronize(soon());
      const auto count = static_cast<std::size_t>(next->count);
      std::vector<std::byte> bytes;
      const auto append = [&bytes](const void* data, std::size_t size) {
        if (!data) return;
        bytes.resize(bytes.size() + size);
        std::memcpy(bytes.data() + bytes.size() - size, data, size);
      };
      append(loader.images(), count * image_bytes);
      append(loader.labels(), count * sizeof(std::int32_t));
      append(loader.labels_b(), count * sizeof(std::int32_t));
      append(loader.weights_b(), count * sizeof(float));
      batches.push_back(std::move(bytes));
    }
    EXPECT_EQ(position, static_cast<std::int64_t>(order.size()));
  }
  return batches;
}

class BatchLoaders : public testing::TestWithParam<DType> {};

TEST_P(BatchLoaders, HostAndResidentGiveTheSameBits) {
  kernels::HostDevice device;
  const kernels::KernelSet kernels = kernels::kernel_set();
  const auto dataset = colours(23);
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  const auto order =
      data::DistributedSampler({.samples = dataset.size(), .rank = 1, .world_size = 2, .seed = 3}).order(0);
  const train::BatchLoaderSpec spec{.dataset = dataset,
                                    .device = device,
                                    .kernels = kernels,
                                    .batch_size = 5,
                                    .dtype = GetParam(),
                                    .normalize = {.mean = {0.1f, 0.2f, 0.3f}, .std = {0.5f, 0.6f, 0.7f}}};
  train::HostBatchLoader loaded(spec);
  train::ResidentBatchLoader resident(spec, *stream, soon());
  const std::size_t image_bytes = 45 * kernels::size_of(GetParam());
  const auto expected = batches_of(loaded, device, image_bytes, order, 5);
  ASSERT_EQ(expected.size(), 5u) << "12 samples by 5, and then 7";
  EXPECT_EQ(expected[3], expected[1]);
  EXPECT_EQ(batches_of(resident, device, image_bytes, order, 5), expected);
}

TEST_P(BatchLoaders, AugmentWithTheSameBits) {
  kernels::HostDevice device;
  const kernels::KernelSet kernels = kernels::kernel_set();
  const auto dataset = colours(23);
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  const auto order = data::DistributedSampler({.samples = dataset.size(), .seed = 3}).order(0);
  train::BatchLoaderSpec spec{.dataset = dataset,
                              .device = device,
                              .kernels = kernels,
                              .batch_size = 5,
                              .dtype = GetParam(),
                              .normalize = {.mean = {0.1f, 0.2f, 0.3f}, .std = {0.5f, 0.6f, 0.7f}},
                              .augment_seed = 8};
  const std::size_t image_bytes = 45 * kernels::size_of(GetParam());
  std::vector<std::vector<std::vector<std::byte>>> seen;
  for (const char* text : {"none", "flip", "flip=alternating", "crop=2", "cutout=2", "crop=1,flip,cutout=3",
                           "resized-crop,flip", "mixup=1", "cutmix=1", "crop=1,flip,mixup=0.4,cutmix=1,cutout=1"}) {
    spec.augment = data::parse_augmentation(text);
    train::HostBatchLoader loaded(spec);
    train::ResidentBatchLoader resident(spec, *stream, soon());
    seen.push_back(batches_of(loaded, device, image_bytes, order, 0));
    EXPECT_EQ(batches_of(resident, device, image_bytes, order, 0), seen.back()) << text;
    const auto middle = seen.back().begin() + std::ssize(seen.back()) / 2;
    EXPECT_EQ(std::equal(seen.back().begin(), middle, middle), !spec.augment.any()) << text << ": another epoch";
    for (std::size_t other = 0; other + 1 < seen.size(); ++other) EXPECT_NE(seen[other], seen.back()) << text;
  }
}

/// As with a balanced sampler.
TEST_P(BatchLoaders, AugmentRepeatedSamplesWithTheSameBits) {
  kernels::HostDevice device;
  const kernels::KernelSet kernels = kernels::kernel_set();
  const auto dataset = colours(23);
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  std::vector<std::int64_t> visits;
  for (std::int64_t i = 0; i < 23; ++i) visits.push_back(kernels::gather_batch::visit_of(i % 2, i / 2));
  train::BatchLoaderSpec spec{.dataset = dataset,
                              .device = device,
                              .kernels = kernels,
                              .batch_size = 1,
                              .dtype = GetParam(),
                              .augment_seed = 8,
                              .repeats_samples = true};
  for (const char* text : {"crop=2,flip", "mixup=1", "crop=1,flip,mixup=0.4,cutmix=1,cutout=1"}) {
    spec.augment = data::parse_augmentation(text);
    const std::vector<std::int64_t> partners = spec.augment.mixes() ? visits : std::vector<std::int64_t>();
    train::HostBatchLoader loaded(spec);
    train::ResidentBatchLoader resident(spec, *stream, soon());
    const auto seen = batches_of(loaded, device, 45 * kernels::size_of(GetParam()), visits, 0, partners);
    EXPECT_EQ(batches_of(resident, device, 45 * kernels::size_of(GetParam()), visits, 0, partners), seen) << text;
    EXPECT_GT(std::set(seen.begin(), seen.begin() + 23).size(), 15u) << text << ": views of two samples";
    if (!spec.augment.mixes()) continue;
    EXPECT_THROW(resident.begin_epoch(*stream, {.order = visits}), InvalidArgument) << "without visits";
  }
}

INSTANTIATE_TEST_SUITE_P(OfType, BatchLoaders, testing::Values(DType::f32, DType::f16, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

TEST(ResidentBatchLoader, RejectsWrongChannelsAndPositions) {
  kernels::HostDevice device;
  const kernels::KernelSet kernels = kernels::kernel_set();
  const auto dataset = colours(3);
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  const train::BatchLoaderSpec two_channels{.dataset = dataset,
                                            .device = device,
                                            .kernels = kernels,
                                            .batch_size = 2,
                                            .normalize = {.mean = {0.5f, 0.5f}, .std = {0.5f, 0.5f}}};
  EXPECT_THROW(train::ResidentBatchLoader(two_channels, *stream, soon()), InvalidArgument);
  train::ResidentBatchLoader loader({.dataset = dataset, .device = device, .kernels = kernels, .batch_size = 2},
                                    *stream, soon());
  EXPECT_THROW(loader.begin_epoch(*stream, {.order = {0, 1, 2, 0}}), InvalidArgument);
  EXPECT_THROW(loader.begin_epoch(*stream, {.order = {0, 1, 2}, .position = 4}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::tests
