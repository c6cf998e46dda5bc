// SPDX-License-Identifier: Apache-2.0
// Steps that the host does not wait for, and steps that are recorded, are the same steps.
#include "train/core/trainer/train_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "comm/groups.h"
#include "kernels/base/error.h"
#include "tests/nn/support/program_rig.h"
#include "tests/train/support/rank_rig.h"
#include "train/core/input_pipeline/batch_loader.h"
#include "train/core/trainer/replica.h"

namespace gradring::tests {
namespace {

constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kSamples = 8;  // batches of 3, 3 and 2
constexpr int kEpochs = 3;

Deadline soon() { return Deadline::after(std::chrono::minutes(1)); }

struct StepsOutcome {
  std::vector<double> losses;
  std::vector<float> weights;
  bool operator==(const StepsOutcome&) const = default;
};

struct Way {
  bool recorded = false;
  std::size_t ahead = 0;  ///< steps enqueued before the first is waited for
};

/// Trains one rank's replica out of a resident data set; every rank starts at samples of its own.
StepsOutcome train_steps(comm::ProcessGroup& group, Way way, kernels::Device& device) {
  StepsOutcome outcome;
  const auto dataset = golden_images();
  const auto backend = make_backend("cpu", device);
  const kernels::KernelSet kernels = kernels::kernel_set();
  train::ReplicaSpec spec;
  spec.batch_size = kBatch;
  spec.step.recorded = way.recorded;
  train::Replica replica(spec, {.device = device,
                                .kernels = kernels,
                                .backend = *backend,
                                .group = group,
                                .sample = dataset->shape(),
                                .classes = dataset->classes()});
  train::ResidentBatchLoader batches({.dataset = *dataset, .device = device, .kernels = kernels, .batch_size = kBatch},
                                     replica.stream(), soon());
  std::vector<std::int64_t> order(kSamples);
  std::iota(order.begin(), order.end(), 5 + kSamples * group.rank());
  std::size_t waiting = 0;
  const auto take = [&] {
    outcome.losses.push_back(replica.step().wait(soon()).loss);
    --waiting;
  };
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    batches.begin_epoch(replica.stream(), {.order = order});
    while (const auto next = batches.next(soon())) {
      replica.step().enqueue(
          {.batch = batches, .count = next->count, .global_samples = next->count * group.world_size()});
      if (++waiting > way.ahead) take();
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
  return outcome;
}

StepsOutcome train_steps(comm::ProcessGroup& group, Way way) {
  kernels::HostDevice device;
  return train_steps(group, way, device);
}

/// The same by `world` ranks: what came of each.
std::vector<StepsOutcome> train_ranks(int world, Way way) {
  std::vector<StepsOutcome> outcomes(static_cast<std::size_t>(world));
  run_ranks(world, [&](comm::ProcessGroup& group) {
    outcomes[static_cast<std::size_t>(group.rank())] = train_steps(group, way);
  });
  return outcomes;
}

/// A world of one that counts how often a graph with collectives is launched.
class ReplayCounter final : public comm::Transport {
 public:
  ReplayCounter(kernels::Device& device, int& replays)
      : lone_(comm::make_single_rank_transport(device)), replays_(replays) {}

  int rank() const override { return lone_->rank(); }
  int world_size() const override { return lone_->world_size(); }
  std::unique_ptr<comm::Segment> allocate(std::size_t bytes, Deadline deadline) override {
    return lone_->allocate(bytes, deadline);
  }
  void submit(kernels::Stream& stream, std::function<void()> collective) override {
    lone_->submit(stream, std::move(collective));
  }
  void enqueue(const comm::Step& step) override { lone_->enqueue(step); }
  comm::Progress poll() override { return lone_->poll(); }
  void wait(Deadline deadline) override { lone_->wait(deadline); }
  void share_failure(comm::FirstFailure& first) override { lone_->share_failure(first); }
  void replay(kernels::Stream& stream, const std::function<void()>& launch) override {
    ++replays_;
    lone_->replay(stream, launch);
  }

 private:
  std::unique_ptr<comm::Transport> lone_;
  int& replays_;
};

TEST(TrainStep, IsTheSameRecordedAndAheadOfTheHost) {
  for (const int world : {1, 2}) {
    const std::vector<StepsOutcome> waited = train_ranks(world, {});
    ASSERT_EQ(waited.front().losses.size(), 9u);
    EXPECT_LT(waited.front().losses.back(), waited.front().losses.front());
    EXPECT_EQ(waited.back(), waited.front()) << "replicas of " << world;
    EXPECT_EQ(train_ranks(world, {.ahead = 5}), waited) << world << " ranks";
    EXPECT_EQ(train_ranks(world, {.recorded = true}), waited) << world << " ranks";
    EXPECT_EQ(train_ranks(world, {.recorded = true, .ahead = 5}), waited) << world << " ranks";
  }
}

TEST(TrainStep, MeasuresPhasesThatAreWithinTheStep) {
  const auto dataset = golden_images();
  for (const bool overlap : {true, false})
    run_ranks(2, [&](comm::ProcessGroup& group) {
      RankRig rig(group, *dataset, {.max_batch = 2, .accumulates = true, .overlap = overlap});
      const auto begin = std::chrono::steady_clock::now();
      const std::optional<train::StepPhases> phases = rig.step({0, 1, 2, 3}, 8).phases;
      const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
      ASSERT_TRUE(phases);
      for (const auto phase : {phases->forward, phases->backward, phases->optimizer}) EXPECT_GT(phase.count(), 0);
      EXPECT_LE(phases->forward + phases->backward + phases->optimizer + rig.replica().exposed_communication(), whole);
      const std::optional<train::StepPhases> next = rig.step({}, 1).phases;
      ASSERT_TRUE(next);
      EXPECT_EQ(next->forward.count(), 0) << "a step without samples has no forward pass";
    });
}

TEST(TrainStep, LaunchesRecordingsThroughTheGroupThatWatchesTheirCollectives) {
  kernels::HostDevice device;
  int replays = 0;
  comm::ProcessGroup group(std::make_unique<ReplayCounter>(device, replays), comm::make_single_rank_transport(device),
                           std::chrono::minutes(1));
  train_steps(group, {});
  EXPECT_EQ(replays, 0);
  train_steps(group, {.recorded = true});
  EXPECT_EQ(replays, 9 - 2) << "every step but the first of each size";
}

/// Another rank may have other counts there, and NCCL requires that all record a collective, or none does.
TEST(TrainStep, RecordsNoPassThatIsTheFirstWithItsNumber) {
  const auto dataset = golden_images();
  kernels::HostDevice device;
  int replays = 0;
  comm::ProcessGroup group(std::make_unique<ReplayCounter>(device, replays), comm::make_single_rank_transport(device),
                           std::chrono::minutes(1));
  RankRig rig(group, *dataset, {.max_batch = 2, .accumulates = true, .recorded = true, .device = &device});
  rig.step({0, 1, 2, 3, 4, 5, 6, 7}, 8);
  EXPECT_EQ(replays, 0) << "four passes, two of them equal";
  rig.step({0, 1, 2, 3, 4, 5, 6, 7}, 8);
  EXPECT_EQ(replays, 4);
}

/// A CPU that cannot record, as a GPU where a library does what a capture forbids.
class NoRecording final : public kernels::Device {
 public:
  kernels::DeviceId id() const override { return device_.id(); }
  std::string description() const override { return device_.description(); }
  kernels::Buffer allocate(std::size_t bytes, kernels::MemoryKind kind) override {
    return device_.allocate(bytes, kind);
  }
  std::unique_ptr<kernels::Stream> make_stream(kernels::StreamMode mode) override { return device_.make_stream(mode); }
  std::unique_ptr<kernels::Event> make_event() override { return device_.make_event(); }
  std::unique_ptr<kernels::Timer> make_timer() override { return device_.make_timer(); }
  std::unique_ptr<kernels::Recording> record(kernels::Stream&, std::function<void()>) override {
    throw DeviceError("cudaStreamEndCapture failed: cudaErrorStreamCaptureInvalidated");
  }

 private:
  kernels::HostDevice device_;
};

TEST(TrainStep, NamesTheOptionThatAvoidsAFailedCapture) {
  run_ranks(1, [](comm::ProcessGroup& group) {
    NoRecording device;
    try {
      train_steps(group, {.recorded = true}, device);
      FAIL() << "the failure was lost";
    } catch (const DeviceError& error) {
      EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("cudaErrorStreamCaptureInvalidated"),
                                               testing::HasSubstr("--cuda-graph off")));
    }
    EXPECT_EQ(train_steps(group, {}, device).losses.size(), 9u) << "and without recording it runs";
  });
}

TEST(TrainStep, RejectsMoreThanItHasRoomForAndNothingToWaitFor) {
  const auto dataset = golden_images();
  run_ranks(1, [&](comm::ProcessGroup& group) {
    kernels::HostDevice device;
    const auto backend = make_backend("cpu", device);
    const kernels::KernelSet kernels = kernels::kernel_set();
    train::ReplicaSpec spec;
    spec.batch_size = 1;
    train::Replica replica(spec, {.device = device,
                                  .kernels = kernels,
                                  .backend = *backend,
                                  .group = group,
                                  .sample = dataset->shape(),
                                  .classes = dataset->classes()});
    train::ResidentBatchLoader batches({.dataset = *dataset, .device = device, .kernels = kernels, .batch_size = 1},
                                       replica.stream(), soon());
    EXPECT_THROW(replica.step().wait(soon()), InvalidArgument);
    std::vector<std::int64_t> order(100);
    std::iota(order.begin(), order.end(), 0);
    batches.begin_epoch(replica.stream(), {.order = order});
    const auto enqueue = [&] {
      batches.next(soon());
      replica.step().enqueue({.batch = batches, .count = 1, .global_samples = 1});
    };
    while (!replica.step().full()) enqueue();
    EXPECT_THROW(enqueue(), InvalidArgument);
    while (!replica.step().idle()) replica.step().wait(soon());
  });
}

}  // namespace
}  // namespace gradring::tests
