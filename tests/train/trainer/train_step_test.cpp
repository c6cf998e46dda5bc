// SPDX-License-Identifier: Apache-2.0
// Steps that the host does not wait for, and steps that are recorded, are the same steps.
#include "train/trainer/train_step.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kernels/runtime/error.h"
#include "tests/nn/support/program_rig.h"
#include "tests/train/support/rank_rig.h"
#include "train/feed/resident_feed.h"
#include "train/trainer/replica.h"

namespace gradring::tests {
namespace {

constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kSamples = 8;  // batches of 3, 3 and 2
constexpr int kEpochs = 3;

Deadline soon() { return Deadline::after(std::chrono::minutes(1)); }

struct Outcome {
  std::vector<double> losses;
  std::vector<float> weights;
  bool operator==(const Outcome&) const = default;
};

/// Trains a replica out of a resident data set, with up to `ahead` steps enqueued before the first is waited for.
Outcome train(bool recorded, std::size_t ahead) {
  Outcome outcome;
  const auto dataset = golden_images();
  run_ranks(1, [&](comm::ProcessGroup& group) {
    kernels::HostDevice device;
    const auto backend = make_backend("cpu", device);
    const kernels::KernelSet kernels = kernels::kernel_set();
    train::Replica replica({.batch_size = kBatch, .optimizer = {}, .buckets = {}, .recorded = recorded},
                           {.device = device,
                            .kernels = kernels,
                            .backend = *backend,
                            .group = group,
                            .sample = dataset->shape(),
                            .classes = dataset->classes()});
    train::ResidentFeed feed({.dataset = *dataset, .device = device, .kernels = kernels, .batch_size = kBatch},
                             replica.stream(), soon());
    std::vector<std::int64_t> order(kSamples);
    std::iota(order.begin(), order.end(), 5);
    std::size_t waiting = 0;
    const auto take = [&] {
      outcome.losses.push_back(replica.step().wait(soon()).loss);
      --waiting;
    };
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      feed.begin_epoch(replica.stream(), order);
      while (const auto next = feed.next(soon())) {
        replica.step().enqueue({.source = feed,
                                .count = next->count,
                                .global_samples = next->count,
                                .learning_rate = 1e-3,
                                .deadline = soon()});
        if (++waiting > ahead) take();
      }
      while (waiting > 0) take();
    }
    EXPECT_TRUE(replica.step().idle());
    EXPECT_FALSE(replica.step().poll().has_value());
    const kernels::Buffer host = replica.weights_on_host(soon());
    for (int i = 0; i < replica.layout().parameters(); ++i) {
      const float* parameter = host.as<float>() + replica.layout().parameter(i).offset;
      outcome.weights.insert(outcome.weights.end(), parameter, parameter + replica.layout().parameter(i).elements);
    }
  });
  return outcome;
}

TEST(TrainStep, IsTheSameRecordedAndAheadOfTheHost) {
  const Outcome waited = train(false, 0);
  ASSERT_EQ(waited.losses.size(), 9u);
  EXPECT_LT(waited.losses.back(), waited.losses.front());
  EXPECT_EQ(train(false, 5), waited);
  EXPECT_EQ(train(true, 0), waited);
  EXPECT_EQ(train(true, 5), waited);
}

TEST(TrainStep, RefusesMoreThanItHasRoomForAndNothingToWaitFor) {
  const auto dataset = golden_images();
  run_ranks(1, [&](comm::ProcessGroup& group) {
    kernels::HostDevice device;
    const auto backend = make_backend("cpu", device);
    const kernels::KernelSet kernels = kernels::kernel_set();
    train::Replica replica({.batch_size = 1, .optimizer = {}, .buckets = {}}, {.device = device,
                                                                               .kernels = kernels,
                                                                               .backend = *backend,
                                                                               .group = group,
                                                                               .sample = dataset->shape(),
                                                                               .classes = dataset->classes()});
    train::ResidentFeed feed({.dataset = *dataset, .device = device, .kernels = kernels, .batch_size = 1},
                             replica.stream(), soon());
    EXPECT_THROW(replica.step().wait(soon()), InvalidArgument);
    std::vector<std::int64_t> order(100);
    std::iota(order.begin(), order.end(), 0);
    feed.begin_epoch(replica.stream(), order);
    const auto enqueue = [&] {
      feed.next(soon());
      replica.step().enqueue(
          {.source = feed, .count = 1, .global_samples = 1, .learning_rate = 1e-3, .deadline = soon()});
    };
    while (!replica.step().full()) enqueue();
    EXPECT_THROW(enqueue(), InvalidArgument);
    while (!replica.step().idle()) replica.step().wait(soon());
  });
}

}  // namespace
}  // namespace gradring::tests
