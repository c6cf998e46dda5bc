// SPDX-License-Identifier: Apache-2.0
#include "data/loader/batch_filler.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "data/augment/lambdas.h"
#include "kernels/base/error.h"
#include "kernels/host/host_device.h"

namespace gradring::data {
namespace {

using ::testing::ElementsAre;

class BatchFillerTest : public ::testing::Test {
 protected:
  BatchFillerTest() {
    slot_.images = device_.allocate(8 * 2 * sizeof(float), kernels::MemoryKind::pinned);
    slot_.labels = device_.allocate(8 * sizeof(std::int32_t), kernels::MemoryKind::pinned);
    std::fill_n(slot_.labels.as<std::int32_t>(), 8, -1);
  }

  bool fill(const std::vector<std::int64_t>& indices, const std::stop_token& stop = {}) {
    return BatchFiller(dataset_, normalize_, {}, 2).fill(indices, slot_, stop);
  }

  const InMemoryDataset dataset_{InMemoryDataset::Contents{
      .name = "three", .shape = {1, 2, 1}, .classes = 3, .pixels = {0, 255, 255, 0, 255, 255}, .labels = {2, 1, 0}}};
  const Normalize normalize_;
  kernels::HostDevice device_;
  BatchSlot slot_;
};

TEST_F(BatchFillerTest, GathersInTheOrderOfTheIndices) {
  EXPECT_TRUE(fill({2, 0, 0, 1, 2, 1}));
  EXPECT_THAT(std::span(slot_.images.as<float>(), 12), ElementsAre(1, 1, -1, 1, -1, 1, 1, -1, 1, 1, 1, -1));
  EXPECT_THAT(std::span(slot_.labels.as<std::int32_t>(), 8), ElementsAre(0, 2, 2, 1, 0, 1, -1, -1));
}

TEST_F(BatchFillerTest, StopsWhenItIsTold) {
  std::stop_source stop;
  EXPECT_TRUE(fill({1}, stop.get_token()));
  stop.request_stop();
  EXPECT_FALSE(fill({2}, stop.get_token()));
  EXPECT_EQ(slot_.labels.as<std::int32_t>()[0], 1) << "nothing is written after the stop";
}

TEST_F(BatchFillerTest, RejectsAnIndexOutsideTheSet) {
  EXPECT_THROW(fill({0, 3}), InvalidArgument);
  EXPECT_THROW(fill({0, 0, 0, 0, 0, -1}), InvalidArgument);
}

/// Batches of all sizes, over and over, by teams of threads: any bit that depends on who writes it would show.
TEST_F(BatchFillerTest, ThreadsWriteTheBitsOfOne) {
  constexpr std::int64_t kSamples = 97, kElements = 5 * 4 * 3;
  InMemoryDataset::Contents contents{.name = "noise", .shape = {5, 4, 3}, .classes = 100, .pixels = {}, .labels = {}};
  for (std::int64_t i = 0; i < kSamples * kElements; ++i)
    contents.pixels.push_back(static_cast<std::uint8_t>(i * 37 % 251));
  for (std::int64_t i = 0; i < kSamples; ++i) contents.labels.push_back(static_cast<std::uint8_t>(i));
  const InMemoryDataset noise(std::move(contents));
  const Normalize normalize({}, 3);
  const auto allocate = [this](std::size_t bytes) { return device_.allocate(bytes, kernels::MemoryKind::pinned); };
  BatchSlot slot{.images = allocate(kSamples * kElements * sizeof(float)),
                 .labels = allocate(kSamples * sizeof(std::int32_t)),
                 .labels_b = allocate(kSamples * sizeof(std::int32_t)),
                 .weights_b = allocate(kSamples * sizeof(float))};
  const Augmentation what = parse_augmentation("crop=2,flip,mixup=1,cutmix=1,cutout=2");
  const auto lambdas = lambdas_of(what);
  std::vector<std::vector<std::byte>> expected;
  for (const int threads : {1, 2, 3, 8}) {
    BatchFiller filler(noise, normalize, {.what = what, .seed = 3, .epoch = 1, .lambdas = lambdas}, threads);
    std::size_t batch = 0;
    for (const std::int64_t count : {97, 1, 2, 0, 31, 64, 7, 97}) {
      std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
      std::iota(indices.rbegin(), indices.rend(), 0);
      for (auto* buffer : {&slot.images, &slot.labels, &slot.labels_b, &slot.weights_b})
        std::memset(buffer->data(), 0x55, buffer->size());
      EXPECT_TRUE(filler.fill(indices, slot));
      std::vector<std::byte> bytes;
      for (const auto* buffer : {&slot.images, &slot.labels, &slot.labels_b, &slot.weights_b})
        bytes.insert(bytes.end(), buffer->data(), buffer->data() + buffer->size());
      if (threads == 1)
        expected.push_back(std::move(bytes));
      else
        EXPECT_EQ(bytes, expected.at(batch)) << threads << " threads, " << count << " samples";
      ++batch;
    }
  }
}

TEST_F(BatchFillerTest, RejectsLessThanOneThread) {
  EXPECT_THROW(BatchFiller(dataset_, normalize_, {}, 0), InvalidArgument);
}

}  // namespace
}  // namespace gradring::data
