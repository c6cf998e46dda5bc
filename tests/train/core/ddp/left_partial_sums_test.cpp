// SPDX-License-Identifier: Apache-2.0
// Gradients that backward has left as partial sums: added up before ranks sum them, or by the check.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/ops/kernel_set.h"
#include "nn/models/model.h"
#include "tests/train/support/rank_rig.h"
#include "train/core/ddp/gradient_reducer.h"
#include "train/core/ddp/non_finite_check.h"

namespace gradring::tests {
namespace {

using kernels::DType;

const std::vector<int> kReadyOrder = {7, 6, 5, 4, 3, 2, 1, 0};
constexpr int kSlices = 3;

struct ReducerCase {
  DType wire = DType::f32;
  bool zero1 = false;    ///< each rank needs the sums of its shards
  bool sharded = false;  ///< besides, buckets share slots (ZeRO 2)
};

/// One rank that reduces the gradients of a small ConvNet.
struct ReducingRank {
  std::vector<nn::Parameter> parameters = nn::parameters_of(nn::convnet({12, 12, 1}, 3));
  nn::ArenaLayout layout;
  train::Shards shards;
  kernels::HostDevice device;
  kernels::KernelSet kernels = kernels::kernel_set();
  std::unique_ptr<kernels::Stream> stream = device.make_stream(kernels::StreamMode::in_place);
  train::DistributedDataParallel ddp;
  train::BucketMemory gradients, staging;
  kernels::PartialSums partial_sums;
  std::vector<std::vector<float>> slices;
  std::unique_ptr<train::GradientReducer> reducer;
  train::NonFiniteCheck check;

  ReducingRank(comm::ProcessGroup& group, const ReducerCase& c)
      : layout(parameters, std::vector<std::vector<int>>{{7, 6, 5}, {4}, {3, 2, 1, 0}},
               kernels::gradient_statistics::kBlock * static_cast<std::size_t>(group.world_size()), 1),
        shards(layout, c.zero1 || c.sharded ? group.world_size() : 1, c.zero1 || c.sharded ? group.rank() : 0),
        ddp(group, layout, device, *stream, kernels::StreamMode::asynchronous),
        gradients({.slots = c.sharded ? 2 : 0}, group, layout),
        staging({}, group, layout),
        slices(parameters.size()),
        reducer(train::make_gradient_reducer({.wire = {.dtype = c.wire}, .sharded = c.sharded},
                                             {.device = device,
                                              .kernels = kernels,
                                              .group = group,
                                              .stream = *stream,
                                              .gradients = gradients,
                                              .shards = shards,
                                              .ddp = ddp,
                                              .partial_sums = partial_sums})),
        check({.device = device,
               .group = group,
               .ddp = ddp,
               .shards = shards,
               .kernel = kernels.gradient_statistics.front(),
               .partial_sums = partial_sums},
              reducer->sums()),
        group_(group) {}

  /// Of the slices that `leave` makes.
  static float sum_of(int parameter, int rank) { return static_cast<float>(6 + kSlices * (parameter + rank)); }

  /// What a plan does: the gradient itself is not written.
  void leave(int parameter) {
    const nn::Gradients& into = reducer->gradients();
    ASSERT_NE(into.partial_sums, nullptr);
    const std::size_t elements = layout.parameter(parameter).elements;
    std::vector<float>& all = slices[static_cast<std::size_t>(parameter)];
    for (int slice = 1; slice <= kSlices; ++slice)
      all.insert(all.end(), elements, static_cast<float>(slice + parameter + group_.rank()));
    std::ranges::fill_n(into.parameter(parameter), static_cast<std::ptrdiff_t>(elements), std::nanf(""));
    const auto stride = static_cast<std::int64_t>(elements);
    into.partial_sums->push_back({all.data(), kSlices, stride, stride, into.parameter(parameter)});
  }
  void backward() {
    reducer->begin({});
    reducer->before_backward();
    for (const int parameter : kReadyOrder) {
      reducer->gradients_begin({&parameter, 1});
      leave(parameter);
      reducer->gradient_ready(parameter);
    }
    reducer->enqueue_end();
  }
  kernels::step_state::StepState checked() {
    kernels::step_state::StepState found;
    unsigned arrivals = 0;
    check.enqueue(*stream, {.found = &found, .arrivals = &arrivals});
    stream->synchronize(soon());
    return found;
  }
  /// All sums over the ranks, on each rank.
  std::vector<float> sums() {
    std::vector<float> all(layout.elements());
    train::ShardTransfer({.device = device, .group = group_, .stream = *stream, .staging = staging, .shards = shards})
        .gather(reducer->sums(), all.data(), soon());
    return all;
  }

 private:
  static Deadline soon() { return Deadline::after(std::chrono::minutes(1)); }

  comm::ProcessGroup& group_;
};

TEST(LeftPartialSums, AreInTheGradientsOfAllRanks) {
  for (const ReducerCase& c : {ReducerCase{}, ReducerCase{.zero1 = true}, ReducerCase{.sharded = true},
                               ReducerCase{.wire = DType::f16}, ReducerCase{.wire = DType::bf16, .sharded = true}})
    for (const int world : {1, 2, 3})
      run_ranks(world, [&](comm::ProcessGroup& group) {
        SCOPED_TRACE(testing::Message() << world << " ranks, " << kernels::name_of(c.wire) << " on the wire, "
                                        << (c.sharded ? "ZeRO 2"
                                            : c.zero1 ? "ZeRO 1"
                                                      : "replicated"));
        ReducingRank rank(group, c);
        rank.backward();
        const bool left_to_the_check = world == 1 && c.wire == DType::f32 && !c.sharded;
        EXPECT_EQ(rank.partial_sums.size(), left_to_the_check ? kReadyOrder.size() : 0);
        const auto found = rank.checked();
        EXPECT_EQ(found.non_finite, 0) << "the gradients are NaN until their sums are written";
        EXPECT_TRUE(rank.partial_sums.empty());
        const std::vector<float> sums = rank.sums();
        for (const int parameter : kReadyOrder) {
          float expected = 0;
          for (int other = 0; other < world; ++other) expected += ReducingRank::sum_of(parameter, other);
          const nn::ArenaLayout::Slice& slice = rank.layout.parameter(parameter);
          for (std::size_t i = 0; i < slice.elements; ++i)
            ASSERT_EQ(sums[slice.offset + i], expected) << "parameter " << parameter << ", element " << i;
        }
      });
}

TEST(LeftPartialSums, OfAFailedPassAreForgotten) {
  for (const bool sharded : {false, true})
    run_ranks(1, [&](comm::ProcessGroup& group) {
      ReducingRank rank(group, {.sharded = sharded});
      rank.reducer->begin({});
      rank.reducer->before_backward();
      const int parameter = kReadyOrder.front();
      rank.reducer->gradients_begin({&parameter, 1});
      rank.leave(parameter);
      rank.reducer->before_backward();
      EXPECT_TRUE(rank.partial_sums.empty());
    });
}

}  // namespace
}  // namespace gradring::tests
