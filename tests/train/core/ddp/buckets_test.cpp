// SPDX-License-Identifier: Apache-2.0
// How gradients are divided into buckets and shards, and the memory of buckets.
#include "train/core/ddp/buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kernels/base/error.h"
#include "nn/models/model.h"
#include "nn/program/program.h"
#include "tests/train/support/rank_rig.h"

namespace gradring::tests {
namespace {

const std::vector<std::vector<int>> kBuckets = {{7}, {6, 5}, {4}, {3, 2, 1, 0}};

nn::ArenaLayout layout_for(int world) {
  return {nn::parameters_of(nn::convnet({12, 12, 1}, 3)), kBuckets, 16 * static_cast<std::size_t>(world), 1};
}

using Buckets = std::vector<std::vector<int>>;

Buckets convnet_buckets(const train::BucketLimits& limits) {
  const nn::Model model = nn::convnet({28, 28, 1}, 10);
  return train::make_buckets(nn::parameters_of(model), nn::Program::ready_order(model), limits);
}

TEST(Buckets, ConvNetHasTwoByPyTorchsLimits) { EXPECT_EQ(convnet_buckets({}), (Buckets{{7, 6, 5, 4}, {3, 2, 1, 0}})); }

TEST(Buckets, FirstLimitAppliesToTheFirstBucketOnly) {
  // fc2.b 40 B, fc2.w 10,240 B | fc1.b 1,024 B, fc1.w 1,638,400 B | the convolutions, 75,264 B
  EXPECT_EQ(convnet_buckets({.first_bytes = 10'000, .rest_bytes = 1'000'000}), (Buckets{{7, 6}, {5, 4}, {3, 2, 1, 0}}));
}

TEST(Buckets, TinyLimitGivesOneTensorEach) {
  EXPECT_EQ(convnet_buckets({.first_bytes = 1, .rest_bytes = 1}), (Buckets{{7}, {6}, {5}, {4}, {3}, {2}, {1}, {0}}));
}

TEST(Buckets, NoParametersGiveNone) { EXPECT_TRUE(train::make_buckets({}, {}, {}).empty()); }

TEST(Shards, CoverEveryBucketOnceForAnyNumberOfRanks) {
  for (int world = 1; world <= 5; ++world) {
    const nn::ArenaLayout layout = layout_for(world);
    std::size_t packed_end = 0;
    for (int bucket = 0; bucket < layout.buckets(); ++bucket) {
      std::size_t end = 0;
      for (int rank = 0; rank < world; ++rank) {
        const train::Shards shards(layout, world, rank);
        const auto slice = shards.in_bucket(bucket);
        EXPECT_EQ(slice.offset, end);
        EXPECT_EQ(shards.packed(bucket).offset, packed_end);
        EXPECT_EQ(shards.packed(bucket).elements, slice.elements);
        EXPECT_EQ(shards.owner(bucket, slice.offset), rank);
        EXPECT_EQ(shards.owner(bucket, slice.offset + slice.elements - 1), rank);
        EXPECT_EQ(shards.whole(), world == 1);
        end += slice.elements;
      }
      EXPECT_EQ(end, layout.bucket(bucket).elements);
      packed_end += end / static_cast<std::size_t>(world);
    }
    EXPECT_EQ(train::Shards(layout, world, 0).elements(), packed_end);
  }
}

TEST(Shards, ConsistOfPartsOfParametersWithoutGaps) {
  for (int world = 1; world <= 5; ++world) {
    const nn::ArenaLayout layout = layout_for(world);
    std::vector<std::size_t> found(static_cast<std::size_t>(layout.parameters()));
    for (int rank = 0; rank < world; ++rank) {
      const train::Shards shards(layout, world, rank);
      for (int bucket = 0; bucket < layout.buckets(); ++bucket) {
        std::size_t end = 0;
        for (const auto& [parameter, slice] : shards.parts(bucket)) {
          EXPECT_EQ(layout.bucket_of(parameter), bucket);
          EXPECT_EQ(slice.offset, end);
          end += slice.elements;
          found[static_cast<std::size_t>(parameter)] += slice.elements;
        }
        EXPECT_EQ(end, shards.in_bucket(bucket).elements);
      }
    }
    for (int parameter = 0; parameter < layout.parameters(); ++parameter)
      EXPECT_GE(found[static_cast<std::size_t>(parameter)], layout.parameter(parameter).elements) << parameter;
  }
}

TEST(Shards, RejectUnevenDivision) {
  const nn::ArenaLayout layout = layout_for(2);
  EXPECT_THROW(train::Shards(layout, 2, 2), InvalidArgument);
  EXPECT_THROW(train::Shards(layout, 0, 0), InvalidArgument);
  EXPECT_THROW(train::Shards(layout, 7, 0), InvalidArgument);
}

TEST(BucketsAtOnce, CountsTheBucketsThatAPlanSpans) {
  const nn::ArenaLayout layout = layout_for(1);
  const auto at_once = [&](const std::vector<std::vector<int>>& plans) {
    return train::buckets_at_once(layout, plans);
  };
  EXPECT_EQ(at_once({{}, {}}), 1);
  EXPECT_EQ(at_once({{0, 1}, {2, 3}, {}}), 1);
  EXPECT_EQ(at_once({{0, 1}, {6, 7}}), 2);
  EXPECT_EQ(at_once({{4, 5, 6, 7}}), 3);
}

TEST(BucketMemory, HasASlotPerBucketOrSharesSlots) {
  run_ranks(1, [](comm::ProcessGroup& group) {
    const nn::ArenaLayout layout = layout_for(3);
    const train::BucketMemory all({}, group, layout), two({.slots = 2}, group, layout);
    EXPECT_EQ(all.bytes(), layout.elements() * sizeof(float));
    for (int bucket = 0; bucket < layout.buckets(); ++bucket) {
      EXPECT_EQ(all.data(bucket), all.data(0) + layout.bucket(bucket).offset * sizeof(float));
      EXPECT_EQ(two.data(bucket), two.data(bucket % 2));
      EXPECT_EQ(two.range(bucket).slice.elements, layout.bucket(bucket).elements);
      EXPECT_LE(two.range(bucket).slice.offset + two.range(bucket).slice.elements, two.bytes() / sizeof(float));
    }
    const std::size_t first = std::max(layout.bucket(0).elements, layout.bucket(2).elements);
    EXPECT_EQ(two.data(1), two.data(0) + first * sizeof(float)) << "each slot is as large as its largest bucket";
    EXPECT_EQ((train::BucketMemory({.dtype = kernels::DType::f16, .slots = 9}, group, layout)).bytes(),
              layout.elements() * 2);
  });
}

TEST(ShardTransfer, ScattersAndGathersAnArena) {
  for (const int world : {1, 3, 5})
    run_ranks(world, [&](comm::ProcessGroup& group) {
      kernels::HostDevice device;
      const auto stream = device.make_stream(kernels::StreamMode::in_place);
      const Deadline deadline = Deadline::after(std::chrono::minutes(1));
      const nn::ArenaLayout layout = layout_for(world);
      const train::Shards shards(layout, world, group.rank());
      const train::BucketMemory staging({.slots = 2}, group, layout);
      train::ShardTransfer transfer(
          {.device = device, .group = group, .stream = *stream, .staging = staging, .shards = shards});
      std::vector<float> whole(layout.elements()), packed(shards.elements(), -1.0f), back(layout.elements());
      if (group.rank() == 0) std::iota(whole.begin(), whole.end(), 1.0f);
      const train::ShardPointers pointers = train::packed_shards(shards, packed.data());
      transfer.scatter(group.rank() == 0 ? whole.data() : nullptr, pointers, deadline);
      for (int bucket = 0; bucket < layout.buckets(); ++bucket)
        EXPECT_EQ(*pointers[static_cast<std::size_t>(bucket)],
                  1.0f + static_cast<float>(layout.bucket(bucket).offset + shards.in_bucket(bucket).offset));
      transfer.gather(pointers, group.rank() == world - 1 ? back.data() : nullptr, deadline);
      std::iota(whole.begin(), whole.end(), 1.0f);
      if (group.rank() == world - 1) {
        EXPECT_EQ(back, whole);
      }
    });
}

}  // namespace
}  // namespace gradring::tests
