// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/statistics.h"

#include <gmock/gmock.h>

#include "data/datasets/in_memory_dataset.h"
#include "kernels/runtime/error.h"

namespace gradring::data {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

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

TEST(DatasetStatistics, RefusesAnEmptySet) {
  const InMemoryDataset empty(
      InMemoryDataset::Contents{.name = "none", .shape = {1, 1, 1}, .classes = 1, .pixels = {}, .labels = {}});
  EXPECT_THROW(statistics_of(empty), InvalidArgument);
}

}  // namespace
}  // namespace gradring::data
