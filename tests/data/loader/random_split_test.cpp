// SPDX-License-Identifier: Apache-2.0
#include "data/loader/random_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "kernels/base/error.h"

namespace gradring::data {
namespace {

using ::testing::ElementsAre;

/// `count` samples of one pixel, whose value is the sample's index.
std::shared_ptr<const Dataset> numbered(int count) {
  InMemoryDataset::Contents contents{.name = "numbered", .shape = {1, 1, 1}, .classes = 256};
  for (int i = 0; i < count; ++i) {
    contents.pixels.push_back(static_cast<std::uint8_t>(i));
    contents.labels.push_back(i);
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

/// Samples of 5 classes, of which class c has c * c, and class 0 none.
std::shared_ptr<const Dataset> squares() {
  InMemoryDataset::Contents contents{.name = "squares", .shape = {1, 1, 1}, .classes = 5};
  for (int label = 1; label < 5; ++label)
    for (int i = 0; i < label * label; ++i) contents.labels.push_back(label);
  contents.pixels.resize(contents.labels.size());
  return std::make_shared<InMemoryDataset>(std::move(contents));
}

TEST(StratifiedSplit, HoldsOutTheShareOfEachClass) {
  const RandomSplit tenth = stratified_split(squares(), 3, 0), half = stratified_split(squares(), 15, 0);
  EXPECT_THAT(samples_of_class(*tenth.held_out), ElementsAre(0, 0, 0, 1, 2)) << "0.1, 0.4, 0.9 and 1.6 samples";
  EXPECT_THAT(samples_of_class(*tenth.rest), ElementsAre(0, 1, 4, 8, 14));
  EXPECT_THAT(samples_of_class(*half.held_out), ElementsAre(0, 0, 2, 5, 8)) << "0.5, 2, 4.5 and 8; one remains of each";
}

TEST(StratifiedSplit, HasEachSampleOnceAndDependsOnTheSeed) {
  for (const std::int64_t held_out : {0, 1, 7, 25, 26}) {
    const RandomSplit split = stratified_split(squares(), held_out, 5);
    EXPECT_EQ(split.held_out->size(), held_out);
    std::vector<std::int64_t> all = split.rest->indices();
    std::ranges::copy(split.held_out->indices(), std::back_inserter(all));
    std::ranges::sort(all);
    for (std::size_t i = 0; i < 30; ++i) ASSERT_EQ(all.at(i), static_cast<std::int64_t>(i));
    for (const int label : {1, 2, 3, 4})
      EXPECT_GE(samples_of_class(*split.rest).at(static_cast<std::size_t>(label)), 1);
  }
  EXPECT_EQ(stratified_split(squares(), 9, 5).held_out->indices(),
            stratified_split(squares(), 9, 5).held_out->indices());
  EXPECT_NE(stratified_split(squares(), 9, 5).held_out->indices(),
            stratified_split(squares(), 9, 6).held_out->indices());
}

TEST(StratifiedSplit, KeepsASampleOfEachClass) {
  EXPECT_THROW(stratified_split(squares(), 27, 0), InvalidArgument);
  EXPECT_THROW(stratified_split(squares(), -1, 0), InvalidArgument);
}

}  // namespace
}  // namespace gradring::data
