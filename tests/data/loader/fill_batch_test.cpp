// SPDX-License-Identifier: Apache-2.0
#include "data/loader/fill_batch.h"

#include <gmock/gmock.h>

#include "data/datasets/in_memory_dataset.h"
#include "kernels/runtime/error.h"
#include "kernels/runtime/host/host_device.h"

namespace gradring::data {
namespace {

using ::testing::ElementsAre;

class FillBatch : public ::testing::Test {
 protected:
  FillBatch() {
    slot_.images = device_.allocate(8 * 2 * sizeof(float), kernels::MemoryKind::pinned);
    slot_.labels = device_.allocate(8 * sizeof(std::int32_t), kernels::MemoryKind::pinned);
    std::fill_n(slot_.labels.as<std::int32_t>(), 8, -1);
  }

  bool fill(const std::vector<std::int64_t>& indices, const std::stop_token& stop = {}) {
    return fill_batch(dataset_, normalize_, indices, slot_, stop);
  }

  const InMemoryDataset dataset_{InMemoryDataset::Contents{
      .name = "three", .shape = {1, 2, 1}, .classes = 3, .pixels = {0, 255, 255, 0, 255, 255}, .labels = {2, 1, 0}}};
  const Normalize normalize_;
  kernels::HostDevice device_;
  BatchSlot slot_;
};

TEST_F(FillBatch, GathersInTheOrderOfTheIndices) {
  EXPECT_TRUE(fill({2, 0, 0, 1, 2, 1}));
  EXPECT_THAT(std::span(slot_.images.as<float>(), 12), ElementsAre(1, 1, -1, 1, -1, 1, 1, -1, 1, 1, 1, -1));
  EXPECT_THAT(std::span(slot_.labels.as<std::int32_t>(), 8), ElementsAre(0, 2, 2, 1, 0, 1, -1, -1));
}

TEST_F(FillBatch, StopsWhenItIsTold) {
  std::stop_source stop;
  EXPECT_TRUE(fill({1}, stop.get_token()));
  stop.request_stop();
  EXPECT_FALSE(fill({2}, stop.get_token()));
  EXPECT_EQ(slot_.labels.as<std::int32_t>()[0], 1) << "nothing is written after the stop";
}

TEST_F(FillBatch, RefusesAnIndexOutsideTheSet) {
  EXPECT_THROW(fill({0, 3}), InvalidArgument);
  EXPECT_THROW(fill({0, 0, 0, 0, 0, -1}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::data
