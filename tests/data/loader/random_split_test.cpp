// SPDX-License-Identifier: Apache-2.0
#include "data/loader/random_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/error.h"

namespace gradring::data {
namespace {

using ::testing::ElementsAre;

/// `count` samples of one pixel, whose value is the sample's index.
std::shared_ptr<const Dataset> numbered(int count) {
  InMemoryDataset::Contents contents{.name = "numbered", .shape = {1, 1, 1}, .classes = 256};
  for (int i = 0; i < count; ++i) {
    contents.pixels.push_back(static_cast<std::uint8_t>(i));
    contents.labels.push_back(static_cast<std::uint8_t>(i));
  }
  return std::make_shared<InMemoryDataset>(std::move(contents));
}

// torch.utils.data.random_split(range(10), [7, 3], generator=torch.Generator().manual_seed(0)): PyTorch 2.5.
TEST(RandomSplit, HoldsOutTheSamplesOfPyTorch) {
  const RandomSplit split = random_split(numbered(10), 3, 0);
  EXPECT_THAT(split.rest->indices(), ElementsAre(4, 1, 7, 5, 3, 9, 0));
  EXPECT_THAT(split.held_out->indices(), ElementsAre(8, 6, 2));
}

TEST(RandomSplit, KeepsPixelsAndLabelsTogether) {
  const RandomSplit split = random_split(numbered(100), 20, 5);
  std::vector<bool> seen(100);
  for (const Subset* part : {split.rest.get(), split.held_out.get()})
    for (std::int64_t i = 0; i < part->size(); ++i) {
      const Sample sample = part->get(i);
      EXPECT_EQ(sample.pixels[0], sample.label);
      EXPECT_EQ(sample.label, part->indices()[static_cast<std::size_t>(i)]);
      EXPECT_FALSE(seen[static_cast<std::size_t>(sample.label)]) << "in both parts";
      seen[static_cast<std::size_t>(sample.label)] = true;
    }
  EXPECT_THAT(seen, ::testing::Each(true));
  EXPECT_EQ(split.rest->size(), 80);
  EXPECT_EQ(split.held_out->name(), "numbered");
}

TEST(RandomSplit, DependsOnTheSeed) {
  EXPECT_EQ(random_split(numbered(100), 20, 5).held_out->indices(),
            random_split(numbered(100), 20, 5).held_out->indices());
  EXPECT_NE(random_split(numbered(100), 20, 5).held_out->indices(),
            random_split(numbered(100), 20, 6).held_out->indices());
}

TEST(RandomSplit, RejectsWhatIsNotInTheDataset) {
  EXPECT_THROW(random_split(numbered(10), 11, 0), InvalidArgument);
  EXPECT_THROW(random_split(numbered(10), -1, 0), InvalidArgument);
  EXPECT_THROW(Subset(numbered(10), {10}), InvalidArgument);
  const Subset two(numbered(10), {3, 4});
  EXPECT_THROW(static_cast<void>(two.pixels(2)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(two.label(-1)), InvalidArgument);
}

}  // namespace
}  // namespace gradring::data
