// SPDX-License-Identifier: Apache-2.0
// The same global batch over 1, 2 and 4 ranks: the same training, as far as rounding lets it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "data/datasets/open_dataset.h"
#include "data/loader/sampler.h"
#include "kernels/ops/kernel_set.h"
#include "tests/nn/support/program_rig.h"
#include "tests/support/safetensors.h"
#include "tests/support/sanitizer.h"
#include "tests/train/support/rank_rig.h"

namespace gradring::tests {
namespace {

struct Trace {
  std::vector<double> losses;
  std::vector<std::vector<float>> first_gradients;
};

/// How the global batch is cut.
struct Layout {
  int world = 1;
  std::int64_t accumulate = 1;  ///< passes of a step
  train::BucketLimits buckets = {};
};

/// Trains `steps` steps of 64 samples. After every step all ranks must hold the same bits.
Trace train(const Layout& layout, int steps, const data::Dataset& dataset) {
  constexpr std::int64_t kGlobalBatch = 64;
  const int world = layout.world;
  const std::int64_t batch = kGlobalBatch / world;  // of a step and rank
  Trace trace;
  run_ranks(world, [&](comm::ProcessGroup& group) {
    RankRig::Options options;
    options.max_batch = (batch + layout.accumulate - 1) / layout.accumulate;
    options.accumulates = layout.accumulate > 1;
    options.seed = static_cast<std::uint64_t>(group.rank());
    options.buckets = layout.buckets;
    RankRig rig(group, dataset, options);
    const auto order =
        data::DistributedSampler({.samples = dataset.size(), .rank = group.rank(), .world_size = world}).order(0);
    for (int step = 0; step < steps; ++step) {
      const auto begin = order.begin() + step * batch;
      const double loss = rig.step({begin, begin + batch}, kGlobalBatch).loss;

      std::vector<float> flat;
      for (const auto& weights : rig.weights()) flat.insert(flat.end(), weights.begin(), weights.end());
      const auto all = group.all_gather_on_host(std::as_bytes(std::span(flat)));
      const std::size_t bytes = flat.size() * sizeof(float);
      for (int r = 1; r < world; ++r)
        ASSERT_EQ(std::memcmp(all.data(), all.data() + static_cast<std::size_t>(r) * bytes, bytes), 0)
            << "rank " << r << " after step " << step;
      const auto gradients = rig.gradients();
      if (group.rank() != 0) continue;
      trace.losses.push_back(loss);
      if (step == 0) trace.first_gradients = gradients;
    }
  });
  return trace;
}

void expect_alike(const Trace& actual, const Trace& expected) {
  for (std::size_t i = 0; i < expected.first_gradients.size(); ++i)
    EXPECT_LT(relative_error(actual.first_gradients[i], expected.first_gradients[i]), 1e-5) << "gradient " << i;
  for (std::size_t step = 0; step < expected.losses.size(); ++step)
    EXPECT_NEAR(actual.losses[step], expected.losses[step], step < 20 ? 1e-4 : 1e-2) << "step " << step;
}

TEST(Layouts, OneTwoAndFourRanksTrainAlikeAndReplicasStayBitIdentical) {
  constexpr int kSteps = kThreadSanitizer ? 3 : 100;
  const auto dataset = data::open_dataset("digits", data::Split::train, "");
  const Trace one = train({}, kSteps, *dataset);
  ASSERT_EQ(one.losses.size(), static_cast<std::size_t>(kSteps));
  if (!kThreadSanitizer) {
    EXPECT_LT(one.losses.back(), one.losses.front() / 2) << "it must learn, or agreement means nothing";
  }
  for (int world : {2, 4}) {
    SCOPED_TRACE(std::to_string(world) + " ranks");
    expect_alike(train({.world = world}, kSteps, *dataset), one);
  }
}

TEST(Layouts, WorldsThatDivideNothingEvenlyTrainAlike) {
  const auto dataset = data::open_dataset("digits", data::Split::train, "");
  constexpr int kSteps = kThreadSanitizer ? 1 : 3;
  const Trace one = train({}, kSteps, *dataset);
  expect_alike(train({.world = 8}, kSteps, *dataset), one);
  const train::BucketLimits tensors{.first_bytes = 1, .rest_bytes = 1};  // a bucket each
  expect_alike(train({.world = 2, .buckets = tensors}, kSteps, *dataset), one);
}

TEST(Layouts, AccumulatedBatchesTrainAsOneDoes) {
  const auto dataset = data::open_dataset("digits", data::Split::train, "");
  constexpr int kSteps = kThreadSanitizer ? 1 : 20;
  const Trace one = train({}, kSteps, *dataset);
  for (const Layout& layout : {Layout{.accumulate = 4}, Layout{.accumulate = 3},  // 22, 22 and 20 samples
                               Layout{.world = 2, .accumulate = 2, .buckets = {.first_bytes = 1, .rest_bytes = 1}},
                               Layout{.world = 4, .accumulate = 5}}) {
    SCOPED_TRACE(std::to_string(layout.world) + " ranks, windows of " + std::to_string(layout.accumulate));
    expect_alike(train(layout, kSteps, *dataset), one);
  }
}

TEST(DistributedDataParallel, TwoRanksGetPyTorchsMeanGradient) {
  const auto golden = tests::read_golden("ddp_two_ranks_mean");
  const auto dataset = golden_images();
  run_ranks(2, [&](comm::ProcessGroup& group) {
    const RankRig::Options options;
    RankRig rig(group, *dataset, options);
    std::vector<std::int64_t> indices;
    for (std::int64_t i = group.rank(); i < 32; i += 2) indices.push_back(i);
    rig.step(indices, 32);
    const auto gradients = rig.gradients();
    int compared = 0;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto stored = golden.find("grad." + rig.parameters()[i].name);
      if (stored == golden.end()) continue;
      ++compared;
      EXPECT_LT(relative_error(gradients[i], stored->second.as<float>()), 1e-4) << stored->first;
    }
    EXPECT_EQ(compared, 3);
  });
}

/// How much of the time in which one bucket goes out and comes back was counted as exposed, where the other rank is late.
double share_exposed(kernels::StreamMode communication) {
  double share = 0;
  run_ranks(2, [&](comm::ProcessGroup& group) {
    using Clock = std::chrono::steady_clock;
    kernels::HostDevice device;
    const auto stream = device.make_stream(kernels::StreamMode::in_place);
    const nn::Model model = nn::convnet({28, 28, 1}, 10);
    const std::vector<nn::Parameter> parameters = nn::parameters_of(model);
    const std::vector<std::vector<int>> one_bucket = {nn::Program::ready_order(model)};
    const nn::ArenaLayout layout(parameters, one_bucket, 2);
    const train::BucketMemory gradients({}, group, layout);
    const train::Shards unshared(layout, 1, 0);
    train::BucketReduction reduction(
        {}, {.group = group, .gradients = gradients, .shards = unshared, .cast = kernels::kernel_set().cast.front()});
    train::DistributedDataParallel ddp(group, layout, device, *stream, communication);
    group.barrier_on_host();
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const auto begin = Clock::now();
    ddp.begin_backward([&](int bucket, kernels::Stream& on) { reduction.enqueue_sum(bucket, on); });
    for (const int parameter : nn::Program::ready_order(model)) ddp.gradient_ready(parameter);
    ddp.enqueue_join();
    ddp.enqueue_end_of_step();
    stream->synchronize(Deadline::after(std::chrono::minutes(1)));
    const auto whole = Clock::now() - begin;
    if (group.rank() == 0) share = std::chrono::duration<double>(ddp.exposed()) / whole;
  });
  return share;
}

TEST(DistributedDataParallel, CountsAsExposedWhateverHoldsTheStepUp) {
  EXPECT_GT(share_exposed(kernels::StreamMode::asynchronous), 0.5);
  EXPECT_GT(share_exposed(kernels::StreamMode::in_place), 0.5);
}

/// A CPU whose streams are all asynchronous, as a GPU's are.
class AsynchronousDevice final : public kernels::Device {
 public:
  kernels::DeviceId id() const override { return device_.id(); }
  std::string description() const override { return device_.description(); }
  kernels::Buffer allocate(std::size_t bytes, kernels::MemoryKind kind) override {
    return device_.allocate(bytes, kind);
  }
  std::unique_ptr<kernels::Stream> make_stream(kernels::StreamMode) override {
    return device_.make_stream(kernels::StreamMode::asynchronous);
  }
  std::unique_ptr<kernels::Event> make_event() override { return device_.make_event(); }
  std::unique_ptr<kernels::Timer> make_timer() override { return device_.make_timer(); }
  std::unique_ptr<kernels::Recording> record(kernels::Stream& stream, std::function<void()> enqueue_work) override {
    return device_.record(stream, std::move(enqueue_work));
  }

 private:
  kernels::HostDevice device_;
};

/// Whether backward goes on before a bucket's sum has ended.
bool overlaps(kernels::StreamMode communication) {
  std::atomic<bool> summed = false;
  bool summed_before_backward_went_on = false;
  run_ranks(1, [&](comm::ProcessGroup& group) {
    AsynchronousDevice device;
    const auto stream = device.make_stream(kernels::StreamMode::asynchronous);
    const nn::Model model = nn::convnet({28, 28, 1}, 10);
    const std::vector<nn::Parameter> parameters = nn::parameters_of(model);
    const std::vector<std::vector<int>> one_bucket = {nn::Program::ready_order(model)};
    const nn::ArenaLayout layout(parameters, one_bucket, 1);
    train::DistributedDataParallel ddp(group, layout, device, *stream, communication);
    ddp.begin_backward([&](int, kernels::Stream& on) {
      on.enqueue([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        summed = true;
      });
    });
    for (const int parameter : nn::Program::ready_order(model)) ddp.gradient_ready(parameter);
    stream->enqueue([&] { summed_before_backward_went_on = summed; });
    ddp.enqueue_join();
    stream->synchronize(Deadline::after(std::chrono::minutes(1)));
  });
  return !summed_before_backward_went_on;
}

TEST(DistributedDataParallel, OverlapCanBeTurnedOffWhereStreamsAreAsynchronous) {
  EXPECT_TRUE(overlaps(kernels::StreamMode::asynchronous));
  EXPECT_FALSE(overlaps(kernels::StreamMode::in_place));
}

TEST(DistributedDataParallel, EveryRankStartsFromTheWeightsOfRankZero) {
  const auto dataset = golden_images();
  std::mutex mutex;
  std::vector<std::vector<std::vector<float>>> starts;
  run_ranks(3, [&](comm::ProcessGroup& group) {
    RankRig::Options options;
    options.seed = static_cast<std::uint64_t>(group.rank());
    const RankRig rig(group, *dataset, options);
    const std::lock_guard lock(mutex);
    starts.push_back(rig.weights());
  });
  const auto golden = tests::read_golden("convnet_init_seed0");
  ASSERT_EQ(starts.size(), 3u);
  for (const auto& start : starts) {
    EXPECT_EQ(start, starts.front());
    EXPECT_EQ(start[0], golden.at("conv_layers.0.weight").as<float>());
  }
}

}  // namespace
}  // namespace gradring::tests
