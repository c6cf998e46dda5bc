// SPDX-License-Identifier: Apache-2.0
#include "train/bench/step_bench.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <span>
#include <string>

#include "comm/groups.h"
#include "comm/rendezvous/store.h"
#include "data/loader/normalize.h"
#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "train/bench/machine_state.h"
#include "train/core/input_pipeline/batch_loader.h"
#include "train/core/trainer/replica.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train::bench {
namespace {

/// Enough that the next batch is no longer in the caches of a core.
constexpr std::int64_t kMostBatches = 8;

data::BatchSlot fill(const data::Dataset& dataset, kernels::Device& device, std::int64_t first, std::int64_t count) {
  const auto sample = static_cast<std::size_t>(dataset.shape().elements());
  const auto samples = static_cast<std::size_t>(count);
  data::BatchSlot slot{.images = device.allocate(samples * sample * sizeof(float), kernels::MemoryKind::pinned),
                       .labels = device.allocate(samples * sizeof(std::int32_t), kernels::MemoryKind::pinned)};
  const data::Normalize normalize({}, dataset.shape()[2]);
  for (std::size_t i = 0; i < samples; ++i) {
    const auto index = first + static_cast<std::int64_t>(i);
    normalize.apply(dataset.pixels(index), std::span(slot.images.as<float>() + i * sample, sample));
    slot.labels.as<std::int32_t>()[i] = dataset.label(index);
  }
  return slot;
}

constexpr auto kStepTimeout = std::chrono::minutes(2);
constexpr std::uint64_t kSeed = 0;

std::unique_ptr<comm::ProcessGroup> single_rank_group() {
  comm::MemoryStore store;
  return comm::make_shared_memory_group(store, {.rank = 0, .world_size = 1, .timeout = kStepTimeout, .name = "bench"});
}

/// On a GPU, so that launching overlaps with computing, as in training.
constexpr std::int64_t kStepsOfMeasurement = 8;

bool computes_on_gpu(const StepBenchParts& parts) { return parts.device.id().kind == kernels::DeviceKind::cuda; }

/// Wrappers that time the parts of a replica; none on a GPU, where they would time the enqueueing alone.
ReplicaDecorators timed_parts(const StepBenchParts& parts, StepTimes& times) {
  if (computes_on_gpu(parts)) return {};
  return {
      .stream = [&times](auto stream) { return std::make_unique<TimedStream>(std::move(stream), times); },
      .optimizer = [&times](auto optimizer) { return std::make_unique<TimedOptimizer>(std::move(optimizer), times); }};
}

/// One rank's replica. On a CPU, all its parts are timed.
class TimedRank {
 public:
  TimedRank(const StepBenchSpec& spec, const StepBenchParts& parts, std::int64_t steps_of_measurement)
      : steps_of_measurement_(steps_of_measurement),
        batches_(parts.dataset, parts.device, spec.batch_size),
        single_(parts.group != nullptr ? nullptr : single_rank_group()),
        group_(parts.group != nullptr ? *parts.group : *single_),
        timed_backend_(parts.backend, times_),
        kernels_(parts.kernels != nullptr ? *parts.kernels : kernels::kernel_set()),
        replica_({.model = spec.model,
                  .batch_size = spec.batch_size,
                  .precision = spec.precision,
                  .checkpointing = spec.checkpointing,
                  .step = {.loss_scaling = {.dynamic = spec.precision == kernels::DType::f16, .policy = {}},
                           .recorded = computes_on_gpu(parts)},
                  .optimizer = spec.optimizer,
                  .buckets = {},
                  .seed = kSeed},
                 {.device = parts.device,
                  .kernels = kernels_,
                  .backend = computes_on_gpu(parts) ? parts.backend : timed_backend_,
                  .group = group_,
                  .sample = parts.dataset.shape(),
                  .classes = parts.dataset.classes()},
                 timed_parts(parts, times_)),
        batch_({.dataset = parts.dataset,
                .device = parts.device,
                .kernels = kernels_,
                .batch_size = spec.batch_size,
                .dtype = spec.precision,
                .keeps_f32 = replica_.reads_f32()}) {}

  /// Steps below 0 warm up.
  void run(std::int64_t step) {
    if (step == 0) {
      finish();
      times_.clear();
      report_.resident_before_bytes = resident_memory().now_bytes;
      group_.barrier_on_host();
    }
    if (enqueued_ == 0) begin_ = std::chrono::steady_clock::now();
    enqueue_step();
    if (++enqueued_ == steps_of_measurement_) finish();
  }

  /// Ends a measurement: waits for the steps that were enqueued.
  void finish() {
    if (enqueued_ == 0) return;
    wait_for_steps();
    times_.end_step(StepTimes::Duration(std::chrono::steady_clock::now() - begin_) / enqueued_);
    enqueued_ = 0;
  }

  /// Another step, counted.
  void count(const simulated_gpu::SimulatedGpu& counter, bool lists) {
    counter.begin_counting(lists);
    enqueue_step();
    wait_for_steps();
    report_.counted = counter.end_counting();
  }

  StepReport report() const {
    StepReport report = report_;
    report.times = times_.table();
    report.program = replica_.program().memory();
    report.segments = replica_.program().segments().ends.size();
    report.resident = resident_memory();
    return report;
  }

 private:
  void enqueue_step() {
    const data::Batch& batch = batches_.next();
    batch_.set(batch);
    replica_.step().enqueue(
        {.batch = batch_, .count = batch.count(), .global_samples = batch.count() * group_.world_size()});
  }
  void wait_for_steps() {
    while (!replica_.step().idle()) report_.loss = replica_.step().wait(Deadline::after(group_.timeout())).loss;
  }

  std::int64_t steps_of_measurement_;
  PreparedBatches batches_;
  StepReport report_;
  StepTimes times_;
  std::unique_ptr<comm::ProcessGroup> single_;
  comm::ProcessGroup& group_;
  TimedBackend timed_backend_;
  kernels::KernelSet kernels_;
  Replica replica_;
  CopiedBatch batch_;
  std::int64_t enqueued_ = 0;  // since begin_
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace

PreparedBatches::PreparedBatches(const data::Dataset& dataset, kernels::Device& device, std::int64_t batch_size) {
  if (batch_size < 1 || batch_size > dataset.size())
    throw InvalidArgument("the batch size is " + std::to_string(batch_size) + ", expected 1 to the " +
                          std::to_string(dataset.size()) + " samples of the dataset: change --batch-size");
  const std::int64_t count = std::min(kMostBatches, dataset.size() / batch_size);
  for (std::int64_t i = 0; i < count; ++i) slots_.push_back(fill(dataset, device, i * batch_size, batch_size));
  const kernels::Shape& sample = dataset.shape();
  for (data::BatchSlot& slot : slots_)
    batches_.emplace_back(slot, owner_,
                          data::Batch::Contents{.shape = {batch_size, sample[0], sample[1], sample[2]},
                                                .position = 0,
                                                .data_wait = std::chrono::nanoseconds(0)});
}

ResidentMemory resident_memory() {
  constexpr std::size_t kKilobyte = 1024;
  const ResidentMemory memory{.now_bytes = number_in_status("self", "VmRSS:") * kKilobyte,
                              .most_bytes = number_in_status("self", "VmHWM:") * kKilobyte};
  if (memory.now_bytes == 0 || memory.most_bytes == 0)
    throw EnvironmentError("cannot read VmRSS and VmHWM from /proc/self/status: mount /proc");
  return memory;
}

std::vector<StepReport> bench_steps(std::span<const StepBenchSpec> specs, const StepBenchParts& parts) {
  const std::int64_t steps = specs.front().steps, warmup = specs.front().warmup;
  check(steps > 0 && warmup >= 0, "the numbers of steps and of warm-up steps are " + std::to_string(steps) + " and " +
                                      std::to_string(warmup) + ", expected 1 or more and 0 or more");
  std::list<TimedRank> ranks;
  for (const StepBenchSpec& spec : specs) {
    check(spec.steps == steps && spec.warmup == warmup, "interleaved benchmarks have " + std::to_string(steps) +
                                                            " and " + std::to_string(spec.steps) +
                                                            " steps, expected as many, with equal warm-up");
    ranks.emplace_back(spec, parts, computes_on_gpu(parts) && specs.size() == 1 ? kStepsOfMeasurement : 1);
  }
  for (std::int64_t step = -warmup; step < steps; ++step)
    for (TimedRank& rank : ranks) rank.run(step);
  for (TimedRank& rank : ranks) rank.finish();
  if (parts.counter) ranks.front().count(*parts.counter, parts.lists);
  std::vector<StepReport> reports;
  for (const TimedRank& rank : ranks) reports.push_back(rank.report());
  return reports;
}

}  // namespace gradring::train::bench
