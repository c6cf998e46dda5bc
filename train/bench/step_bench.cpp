// SPDX-License-Identifier: Apache-2.0
#include "train/bench/step_bench.h"

#include <array>
#include <span>

#include "comm/rendezvous/memory_store.h"
#include "comm/shared_memory_group.h"
#include "kernels/kernel_set.h"
#include "kernels/runtime/error.h"
#include "train/bench/prepared_batches.h"
#include "train/bench/timed_backend.h"
#include "train/bench/timed_optimizer.h"
#include "train/bench/timed_stream.h"
#include "train/feed/loaded_batch.h"
#include "train/trainer/replica.h"

namespace gradring::train::bench {
namespace {

constexpr auto kPatience = std::chrono::minutes(2);
constexpr std::uint64_t kSeed = 0;

std::unique_ptr<comm::ProcessGroup> world_of_one() {
  comm::MemoryStore store;
  return comm::make_shared_memory_group(store, {.rank = 0, .world_size = 1, .timeout = kPatience, .name = "bench"});
}

/// A world of one as the trainer makes it, with every part timed.
class TimedRank {
 public:
  TimedRank(const StepBenchSpec& spec, const StepBenchParts& parts)
      : spec_(spec),
        batches_(parts.dataset, parts.device, spec.batch_size),
        group_(world_of_one()),
        backend_(parts.backend, times_),
        kernels_(kernels::kernel_set()),
        replica_(
            {.model = spec.model,
             .batch_size = spec.batch_size,
             .precision = spec.precision,
             .checkpointing = spec.checkpointing,
             .loss_scaling = {.dynamic = spec.precision == kernels::DType::f16, .policy = {}},
             .optimizer = spec.optimizer,
             .buckets = {},
             .seed = kSeed},
            {.device = parts.device,
             .kernels = kernels_,
             .backend = backend_,
             .group = *group_,
             .sample = parts.dataset.shape(),
             .classes = parts.dataset.classes()},
            {.stream = [this](auto stream) { return std::make_unique<TimedStream>(std::move(stream), times_); },
             .optimizer =
                 [this](auto optimizer) { return std::make_unique<TimedOptimizer>(std::move(optimizer), times_); }}),
        loaded_(parts.device, kernels_, parts.dataset.shape(), spec.batch_size, spec.precision) {}

  /// Steps below 0 warm up.
  void run(std::int64_t step) {
    if (step == 0) {
      times_.clear();
      report_.resident_before_bytes = resident_memory().now_bytes;
    }
    const data::Batch& batch = batches_.next();
    const auto begin = std::chrono::steady_clock::now();
    loaded_.set(batch);
    report_.loss = replica_.step()
                       .run({.source = loaded_, .count = batch.count(), .global_samples = batch.count()},
                            Deadline::after(kPatience))
                       .loss;
    times_.end_step(std::chrono::steady_clock::now() - begin);
  }

  StepReport report() const {
    StepReport report = report_;
    report.times = times_.table();
    report.program = replica_.program().memory();
    report.segments = replica_.program().segments().ends.size();
    report.resident = resident_memory();
    return report;
  }

  const StepBenchSpec& spec() const { return spec_; }

 private:
  StepBenchSpec spec_;
  PreparedBatches batches_;
  StepReport report_;
  StepTimes times_;
  std::unique_ptr<comm::ProcessGroup> group_;
  TimedBackend backend_;
  kernels::KernelSet kernels_;
  Replica replica_;
  LoadedBatch loaded_;
};

/// All steps of the ranks, which are alike in their number, in turns.
void run(std::span<TimedRank* const> ranks) {
  const StepBenchSpec& spec = ranks.front()->spec();
  check(spec.steps > 0 && spec.warmup >= 0, "there must be steps to measure");
  for (std::int64_t step = -spec.warmup; step < spec.steps; ++step)
    for (TimedRank* rank : ranks) rank->run(step);
}

}  // namespace

StepReport bench_steps(const StepBenchSpec& spec, const StepBenchParts& parts) {
  TimedRank rank(spec, parts);
  run(std::array{&rank});
  return rank.report();
}

std::pair<StepReport, StepReport> bench_steps_in_turns(const StepBenchSpec& one, const StepBenchSpec& other,
                                                       const StepBenchParts& parts) {
  check(one.steps == other.steps && one.warmup == other.warmup, "steps in turns must be as many on both sides");
  TimedRank first(one, parts), second(other, parts);
  run(std::array{&first, &second});
  return {first.report(), second.report()};
}

}  // namespace gradring::train::bench
