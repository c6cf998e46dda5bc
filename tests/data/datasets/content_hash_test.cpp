// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/dataset.h"

#include <gtest/gtest.h>

#include <functional>

#include "data/loader/random_split.h"

namespace gradring::data {
namespace {

using Contents = InMemoryDataset::Contents;

std::string hash_of(const std::function<void(Contents&)>& change) {
  Contents contents{
      .name = "three", .shape = {1, 2, 1}, .classes = 3, .pixels = {1, 2, 3, 4, 5, 6}, .labels = {2, 0, 1}};
  change(contents);
  return to_hex(content_hash(InMemoryDataset(std::move(contents))));
}

TEST(ContentHash, ChangesWithEveryLabelPixelAndShape) {
  const std::string expected = hash_of([](Contents&) {});
  EXPECT_EQ(hash_of([](Contents&) {}), expected);
  EXPECT_EQ(hash_of([](Contents& contents) { contents.name = "another"; }), expected) << "the samples are the same";
  EXPECT_NE(hash_of([](Contents& contents) { contents.labels = {2, 1, 0}; }), expected);
  EXPECT_NE(hash_of([](Contents& contents) { contents.shape = {2, 1, 1}; }), expected);
  EXPECT_NE(hash_of([](Contents& contents) { contents.classes = 4; }), expected);
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_NE(hash_of([i](Contents& contents) { contents.pixels[i] ^= 1; }), expected) << "pixel " << i;
}

TEST(ContentHash, IsThatOfTheSamplesInTheirOrder) {
  const auto whole = std::make_shared<const InMemoryDataset>(
      Contents{.name = "two", .shape = {1, 1, 1}, .classes = 2, .pixels = {7, 8}, .labels = {0, 1}});
  EXPECT_EQ(content_hash(Subset(whole, {0, 1})), content_hash(*whole));
  EXPECT_NE(content_hash(Subset(whole, {1, 0})), content_hash(*whole));
  EXPECT_NE(content_hash(Subset(whole, {0})), content_hash(*whole));
}

}  // namespace
}  // namespace gradring::data
