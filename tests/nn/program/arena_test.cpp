// SPDX-License-Identifier: Apache-2.0
#include "nn/program/arena.h"

#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "nn/program/program.h"

namespace gradring::nn {
namespace {

const std::vector<Parameter>& convnet_parameters() {
  static const std::vector<Parameter> parameters = parameters_of(convnet({28, 28, 1}, 10));
  return parameters;
}

TEST(ArenaLayout, PlacesEveryTensorOnceAlignedAndApart) {
  const std::vector<std::vector<int>> buckets = {{7, 6, 5, 4}, {3, 2, 1, 0}};
  const ArenaLayout layout(convnet_parameters(), buckets, 48, 3);
  std::vector<int> owners(layout.elements());
  for (int i = 0; i < layout.parameters(); ++i) {
    const auto& slice = layout.parameter(i);
    EXPECT_EQ(slice.offset % ArenaLayout::kAlignment, 0u);
    const auto& bucket = layout.bucket(layout.bucket_of(i));
    EXPECT_GE(slice.offset, bucket.offset);
    EXPECT_LE(slice.offset + slice.elements, bucket.offset + bucket.elements);
    for (std::size_t e = 0; e < slice.elements; ++e) EXPECT_EQ(owners[slice.offset + e]++, 0);
  }
  const auto& piggyback = layout.piggyback();
  EXPECT_EQ(piggyback.elements, 3u);
  for (std::size_t e = 0; e < piggyback.elements; ++e) EXPECT_EQ(owners[piggyback.offset + e]++, 0);
}

TEST(ArenaLayout, BucketsFollowEachOtherAndDivideByThePadding) {
  const std::vector<std::vector<int>> buckets = {{7}, {6, 5}, {4, 3, 2, 1, 0}};
  for (std::size_t padding : {1u, 7u, 48u, 1024u}) {
    const ArenaLayout layout(convnet_parameters(), buckets, padding, 1);
    std::size_t end = 0;
    for (int b = 0; b < layout.buckets(); ++b) {
      EXPECT_EQ(layout.bucket(b).offset, end);
      EXPECT_EQ(layout.bucket(b).elements % padding, 0u);
      end += layout.bucket(b).elements;
    }
    EXPECT_EQ(end, layout.elements());
  }
}

TEST(ArenaLayout, RejectsBucketsThatDoNotCoverTheModel) {
  const auto layout = [](std::vector<std::vector<int>> buckets) { ArenaLayout(convnet_parameters(), buckets, 1); };
  EXPECT_THROW(layout({{0, 1, 2, 3, 4, 5, 6}}), InvalidArgument);
  EXPECT_THROW(layout({{0, 1, 2, 3, 4, 5, 6, 7, 7}}), InvalidArgument);
  EXPECT_THROW(layout({{0, 1, 2, 3, 4, 5, 6, 8}}), InvalidArgument);
  EXPECT_THROW(layout({}), InvalidArgument);
}

}  // namespace
}  // namespace gradring::nn
