// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/in_memory_dataset.h"

#include <gmock/gmock.h>

#include "kernels/runtime/error.h"

namespace gradring::data {
namespace {

InMemoryDataset::Contents two_samples() {
  return {.name = "two", .shape = {1, 2, 1}, .classes = 3, .pixels = {10, 20, 30, 40}, .labels = {2, 0}};
}

TEST(InMemoryDataset, GivesSamplesByIndex) {
  const InMemoryDataset dataset(two_samples());
  EXPECT_EQ(dataset.size(), 2);
  EXPECT_THAT(dataset.pixels(1), ::testing::ElementsAre(30, 40));
  EXPECT_EQ(dataset.label(0), 2);
}

TEST(InMemoryDataset, RefusesIndicesOutside) {
  const InMemoryDataset dataset(two_samples());
  EXPECT_THROW(dataset.pixels(2), InvalidArgument);
  EXPECT_THROW(dataset.pixels(-1), InvalidArgument);
  EXPECT_THROW(dataset.label(2), InvalidArgument);
}

TEST(InMemoryDataset, RefusesContentsThatDoNotFit) {
  auto contents = two_samples();
  contents.pixels.pop_back();
  EXPECT_THROW(InMemoryDataset{contents}, InvalidArgument);
  contents = two_samples();
  contents.classes = 2;
  EXPECT_THROW(InMemoryDataset{contents}, InvalidArgument);
  contents = two_samples();
  contents.shape = {1, 2};
  EXPECT_THROW(InMemoryDataset{contents}, InvalidArgument);
}

}  // namespace
}  // namespace gradring::data
