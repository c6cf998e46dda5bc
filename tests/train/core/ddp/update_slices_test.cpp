// SPDX-License-Identifier: Apache-2.0
// Which weights an optimizer updates at once, where some decay and others do not.
#include "train/core/ddp/compute_weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "kernels/host/host_device.h"
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/ops/kernel_set.h"
#include "nn/models/model.h"
#include "tests/train/support/rank_rig.h"
#include "train/core/ddp/gathered_buckets.h"
#include "train/core/ddp/parameter_groups.h"

namespace gradring::tests {
namespace {

using train::UpdateSlice;

/// One rank's slices of a small ConvNet in two buckets.
struct Rank {
  std::vector<nn::Parameter> parameters = nn::parameters_of(nn::convnet({12, 12, 1}, 3));
  nn::ArenaLayout layout;
  train::Shards shards;
  kernels::HostDevice device;
  train::BucketMemory gradients;
  train::GatheredWeights weights;

  Rank(comm::ProcessGroup& group, kernels::DType dtype)
      : layout(parameters, std::vector<std::vector<int>>{{7, 6, 5, 4}, {3, 2, 1, 0}},
               64 * static_cast<std::size_t>(group.world_size())),
        shards(layout, group.world_size(), group.rank()),
        gradients({}, group, layout),
        weights({.device = device, .group = group, .shards = shards, .cast = kernels::kernel_set().cast.front()},
                dtype) {}

  std::vector<UpdateSlice> slices(bool no_bias_decay) const {
    return slices(train::parameter_groups(parameters, {.weight_decay = 1, .no_bias_decay = no_bias_decay}), {});
  }
  std::vector<UpdateSlice> slices(const train::ParameterGroups& groups, std::span<const int> matrices) const {
    return train::update_slices(shards, weights, train::shards_within(shards, gradients),
                                {.group = groups.of_parameter, .matrix = matrices});
  }
  /// Whether the weight at a place in the bucket decays, by where the parameters lie.
  bool is_weight(int bucket, std::size_t element) const {
    bool weight = true;
    for (int i = 0; i < layout.parameters(); ++i)
      if (layout.bucket_of(i) == bucket && layout.parameter(i).offset - layout.bucket(bucket).offset <= element &&
          element < layout.parameter(i).offset - layout.bucket(bucket).offset + layout.parameter(i).elements)
        weight = parameters[static_cast<std::size_t>(i)].name.ends_with("weight");
    return weight;
  }
  /// Where a slice begins in its bucket.
  std::size_t in_bucket(const UpdateSlice& slice) const {
    const int bucket = bucket_of(slice);
    return shards.in_bucket(bucket).offset + slice.state_offset - shards.packed(bucket).offset;
  }
  int bucket_of(const UpdateSlice& slice) const { return slice.state_offset < shards.packed(1).offset ? 0 : 1; }
  bool is_gap(int bucket, std::size_t element) const {
    for (int i = 0; i < layout.parameters(); ++i) {
      const std::size_t begin = layout.parameter(i).offset - layout.bucket(bucket).offset;
      if (layout.bucket_of(i) == bucket && begin <= element && element < begin + layout.parameter(i).elements)
        return false;
    }
    return true;
  }
};

/// Each element of this rank's shards in one slice, with all its pointers, and in the right group.
void expect_complete(const Rank& rank, const std::vector<UpdateSlice>& slices, bool no_bias_decay) {
  std::size_t at = 0;
  for (const UpdateSlice& slice : slices) {
    EXPECT_EQ(slice.state_offset, at) << "the state is packed";
    at += slice.elements;
  }
  EXPECT_EQ(at, rank.shards.elements());
  const auto gradients = train::shards_within(rank.shards, rank.gradients);
  for (int bucket = 0; bucket < rank.layout.buckets(); ++bucket) {
    const auto b = static_cast<std::size_t>(bucket);
    const auto packed = rank.shards.packed(bucket), shard = rank.shards.in_bucket(bucket);
    for (std::size_t i = 0; i < packed.elements; ++i) {
      const std::size_t place = packed.offset + i;
      const auto slice =
          std::ranges::find_if(slices, [place](const UpdateSlice& s) { return place < s.state_offset + s.elements; });
      ASSERT_NE(slice, slices.end());
      const std::size_t in_slice = place - slice->state_offset;
      ASSERT_EQ(slice->weights + in_slice, rank.weights.master()[b] + i);
      ASSERT_EQ(slice->gradients + in_slice, gradients[b] + i);
      if (slice->copy.data) {
        ASSERT_EQ(static_cast<std::byte*>(slice->copy.data) + 2 * in_slice,
                  static_cast<std::byte*>(rank.weights.copy(bucket).data) + 2 * i);
      }
      if (!rank.is_gap(bucket, shard.offset + i)) {
        ASSERT_EQ(slice->group == 0, !no_bias_decay || rank.is_weight(bucket, shard.offset + i));
      }
    }
  }
}

TEST(UpdateSlices, CutShardsWhereGroupsMeetAndNowhereElse) {
  for (const int world : {1, 2, 3, 4})
    for (const kernels::DType dtype : {kernels::DType::f32, kernels::DType::f16})
      run_ranks(world, [&](comm::ProcessGroup& group) {
        const Rank rank(group, dtype);
        const auto one_group = rank.slices(false), two_groups = rank.slices(true);
        expect_complete(rank, one_group, false);
        expect_complete(rank, two_groups, true);
        EXPECT_LE(one_group.size(), 2u) << "at most one a bucket";
        EXPECT_LE(two_groups.size(), 2u + 8u);
        if (world == 1) {
          EXPECT_EQ(one_group.size(), 1u);
          EXPECT_EQ(two_groups.size(), 8u) << "weight and bias take turns";
        }
        for (std::size_t i = 1; i < two_groups.size(); ++i) {
          const UpdateSlice &a = two_groups[i - 1], &b = two_groups[i];
          const bool neighbours = a.weights + a.elements == b.weights && a.gradients + a.elements == b.gradients;
          const bool of_a_bucket = rank.bucket_of(a) == rank.bucket_of(b);
          EXPECT_FALSE(a.group == b.group && neighbours && of_a_bucket) << "neighbours of a group are one";
        }
      });
}

/// All ranks together have each element of each matrix once, and padding is in no matrix.
TEST(UpdateSlices, DivideMatrices) {
  for (const int world : {1, 2, 3, 4})
    for (const kernels::DType dtype : {kernels::DType::f32, kernels::DType::f16})
      run_ranks(world, [&](comm::ProcessGroup& group) {
        const Rank rank(group, dtype);
        const auto groups = train::parameter_groups(rank.parameters, {.kind = train::OptimizerKind::muon});
        const train::WeightMatrices matrices = train::weight_matrices(rank.parameters, groups, rank.layout);
        ASSERT_EQ(matrices.matrices.size(), 3u) << "of the hidden layers";
        std::vector<std::int64_t> parts(3);
        for (const UpdateSlice& slice : rank.slices(groups, matrices.of_parameter)) {
          const bool is_muon =
              groups.groups[static_cast<std::size_t>(slice.group)].options.kind == train::OptimizerKind::muon;
          if (slice.matrix < 0) {
            EXPECT_TRUE(!is_muon || rank.is_gap(rank.bucket_of(slice), rank.in_bucket(slice)));
            continue;
          }
          EXPECT_TRUE(is_muon);
          const train::WeightMatrix& matrix = matrices.matrices[static_cast<std::size_t>(slice.matrix)];
          EXPECT_EQ(matrix.bucket, rank.bucket_of(slice));
          EXPECT_EQ(matrix.offset + slice.matrix_offset, rank.in_bucket(slice));
          EXPECT_LE(static_cast<std::int64_t>(slice.matrix_offset + slice.elements), matrix.rows * matrix.columns);
          parts[static_cast<std::size_t>(slice.matrix)] += static_cast<std::int64_t>(slice.elements);
        }
        const auto all = group.all_gather_on_host(std::as_bytes(std::span(parts)));
        for (std::size_t m = 0; m < parts.size(); ++m) {
          std::int64_t elements = 0;
          for (int other = 0; other < world; ++other) {
            std::int64_t part = 0;
            std::memcpy(&part, all.data() + (static_cast<std::size_t>(other) * parts.size() + m) * sizeof(part),
                        sizeof(part));
            elements += part;
          }
          EXPECT_EQ(elements, matrices.matrices[m].rows * matrices.matrices[m].columns);
        }
      });
}

}  // namespace
}  // namespace gradring::tests
