// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/dataset.h"

#include <gmock/gmock.h>

#include "kernels/base/error.h"

namespace gradring::data {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

InMemoryDataset::Contents two_samples() {
  return {.name = "two", .shape = {1, 2, 1}, .classes = 3, .pixels = {10, 20, 30, 40}, .labels = {2, 0}};
}

TEST(InMemoryDataset, GivesSamplesByIndex) {
  const InMemoryDataset dataset(two_samples());
  EXPECT_EQ(dataset.size(), 2);
  EXPECT_THAT(dataset.pixels(1), ::testing::ElementsAre(30, 40));
  EXPECT_EQ(dataset.label(0), 2);
}

TEST(InMemoryDataset, RejectsIndicesOutside) {
  const InMemoryDataset dataset(two_samples());
  EXPECT_THROW(dataset.pixels(2), InvalidArgument);
  EXPECT_THROW(dataset.pixels(-1), InvalidArgument);
  EXPECT_THROW(dataset.label(2), InvalidArgument);
}

TEST(InMemoryDataset, RejectsContentsThatDoNotFit) {
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

TEST(DatasetStatistics, CountsClassesAndMeasuresEachChannel) {
  const InMemoryDataset dataset(InMemoryDataset::Contents{.name = "two",
                                                          .shape = {1, 2, 2},
                                                          .classes = 3,
                                                          .pixels = {0, 255, 255, 255, 0, 255, 255, 255},
                                                          .labels = {2, 2}});
  const DatasetStatistics found = statistics_of(dataset);
  EXPECT_THAT(found.samples_of_class, ElementsAre(0, 0, 2));
  EXPECT_THAT(found.mean, ElementsAre(DoubleNear(0.5, 1e-12), DoubleNear(1, 1e-12)));
  EXPECT_THAT(found.std, ElementsAre(DoubleNear(0.5, 1e-12), DoubleNear(0, 1e-12)));
}

TEST(DatasetStatistics, RejectsAnEmptySet) {
  const InMemoryDataset empty(
      InMemoryDataset::Contents{.name = "none", .shape = {1, 1, 1}, .classes = 1, .pixels = {}, .labels = {}});
  EXPECT_THROW(statistics_of(empty), InvalidArgument);
}

}  // namespace
}  // namespace gradring::data
