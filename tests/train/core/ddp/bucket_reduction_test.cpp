// SPDX-License-Identifier: Apache-2.0
// Gradients that travel in 16 bits: what is exact stays exact, what is not is rounded alike on all ranks.
#include "train/core/ddp/gradient_reducer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/host/host_device.h"
#include "kernels/ops/kernel_set.h"
#include "nn/models/model.h"
#include "nn/program/program.h"
#include "tests/nn/support/program_rig.h"
#include "tests/train/support/rank_rig.h"

namespace gradring::tests {
namespace {

using kernels::DType;

constexpr float kLoss = 1234567.25f;  // f16 has no such number, bf16 another

/// The arena of a small model in two buckets, after the reduction has summed what `gradient(rank, element)` says.
std::vector<float> summed(DType dtype, int world, const std::function<float(int, std::size_t)>& gradient) {
  std::vector<float> result;
  run_ranks(world, [&](comm::ProcessGroup& group) {
    kernels::HostDevice device;
    const auto parameters = nn::parameters_of(nn::convnet({12, 12, 1}, 3));
    const std::vector<std::vector<int>> buckets = {{7, 6, 5, 4}, {3, 2, 1, 0}};
    const nn::ArenaLayout layout(parameters, buckets, 16 * static_cast<std::size_t>(world), 1);
    const train::BucketMemory memory({}, group, layout);
    const train::Shards whole(layout, 1, 0);
    const nn::Arena arena{layout, reinterpret_cast<float*>(memory.data(0))};
    for (int parameter = 0; parameter < layout.parameters(); ++parameter)
      for (std::size_t i = 0; i < layout.parameter(parameter).elements; ++i)
        arena.parameter(parameter)[i] = gradient(group.rank(), i);
    train::BucketReduction reduction(
        {.dtype = dtype},
        {.group = group, .gradients = memory, .shards = whole, .cast = kernels::kernel_set().cast.front()});
    *reduction.loss_slot() = kLoss;
    const auto stream = device.make_stream(kernels::StreamMode::asynchronous);
    for (int bucket = 0; bucket < layout.buckets(); ++bucket) reduction.enqueue_sum(bucket, *stream);
    stream->synchronize(Deadline::after(std::chrono::minutes(1)));
    EXPECT_EQ(*reduction.loss_slot(), kLoss * static_cast<float>(world)) << "the loss is summed in f32";

    const std::span<const float> mine(arena.data, layout.elements());
    const auto all = group.all_gather_on_host(std::as_bytes(mine));
    for (int rank = 1; rank < world; ++rank)
      EXPECT_EQ(
          std::memcmp(all.data(), all.data() + static_cast<std::size_t>(rank) * mine.size_bytes(), mine.size_bytes()),
          0);
    arena.piggyback()[0] = 0;  // it is in the bucket in f32 only
    if (group.rank() == 0) result.assign(mine.begin(), mine.end());
  });
  return result;
}

TEST(BucketReduction, SumsExactlyWhatSixteenBitsHold) {
  const auto small = [](int rank, std::size_t i) {
    return static_cast<float>(static_cast<int>(i % 13) - 6 + rank) / 8;
  };
  for (const int world : {1, 2, 3}) {
    const auto expected = summed(DType::f32, world, small);
    EXPECT_EQ(summed(DType::f16, world, small), expected) << world;
    EXPECT_EQ(summed(DType::bf16, world, small), expected) << world;
  }
}

TEST(BucketReduction, RoundsWhatSixteenBitsDoNotHold) {
  const auto third = [](int rank, std::size_t) { return rank == 0 ? 1.0f / 3 : 0.0f; };
  const float f16 = summed(DType::f16, 2, third)[0], bf16 = summed(DType::bf16, 2, third)[0];
  EXPECT_EQ(f16, 0.333251953125f);
  EXPECT_EQ(bf16, 0.333984375f);
}

TEST(BucketReduction, OverflowsToInfinity) {
  const auto large = [](int, std::size_t) { return 40000.0f; };
  EXPECT_TRUE(std::isinf(summed(DType::f16, 2, large)[0]));
  EXPECT_EQ(summed(DType::f32, 2, large)[0], 80000.0f);
}

/// Gradients and loss of one step of two ranks in f16.
struct Step {
  std::vector<std::vector<float>> gradients;
  double loss = 0;
};

Step one_step(DType wire) {
  Step step;
  const auto dataset = golden_images();
  run_ranks(2, [&](comm::ProcessGroup& group) {
    RankRig::Options options;
    options.max_batch = 8;
    options.precision = DType::f16;
    options.loss_scaling = {.dynamic = true, .initial = 1024, .policy = {}};
    options.wire = {.dtype = wire};
    RankRig rig(group, *dataset, options);
    std::vector<std::int64_t> indices(8);
    std::iota(indices.begin(), indices.end(), group.rank() * 8);
    const double loss = rig.step(indices, 16).loss;
    if (group.rank() == 0) step = {rig.gradients(), loss};
  });
  return step;
}

TEST(BucketReduction, ChangesTheGradientsOfAStepByRoundingOnly) {
  const Step wide = one_step(DType::f32);
  for (const DType wire : {DType::f16, DType::bf16}) {
    const Step narrow = one_step(wire);
    EXPECT_EQ(narrow.loss, wide.loss);
    for (std::size_t i = 0; i < wide.gradients.size(); ++i)
      EXPECT_LT(relative_error(narrow.gradients[i], wide.gradients[i]), wire == DType::f16 ? 2e-3 : 1e-2) << i;
    EXPECT_NE(narrow.gradients, wide.gradients);
  }
}

}  // namespace
}  // namespace gradring::tests
