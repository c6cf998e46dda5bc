// SPDX-License-Identifier: Apache-2.0
#include "train/bench/step_bench.h"

#include "comm/rendezvous/memory_store.h"
#include "comm/shared_memory_group.h"
#include "kernels/kernel_set.h"
#include "kernels/runtime/error.h"
#include "nn/init/torch_uniform.h"
#include "nn/program/program.h"
#include "train/bench/prepared_batches.h"
#include "train/bench/timed_backend.h"
#include "train/bench/timed_optimizer.h"
#include "train/bench/timed_stream.h"
#include "train/parallel/buckets.h"
#include "train/trainer/train_step.h"

namespace gradring::train::bench {
namespace {

constexpr auto kPatience = std::chrono::minutes(2);
constexpr double kLearningRate = 1e-3;
constexpr std::uint64_t kSeed = 0;

std::unique_ptr<comm::ProcessGroup> world_of_one() {
  comm::MemoryStore store;
  return comm::make_shared_memory_group(store, {.rank = 0, .world_size = 1, .timeout = kPatience, .name = "bench"});
}

/// A rank as the trainer makes it, with every part timed.
class TimedRank {
 public:
  TimedRank(const StepBenchSpec& spec, const StepBenchParts& parts)
      : group_(world_of_one()),
        backend_(parts.backend, times_),
        kernels_(kernels::kernel_set()),
        model_(nn::make_model(spec.model, parts.dataset.shape(), parts.dataset.classes())),
        parameters_(nn::parameters_of(model_)),
        layout_(parameters_, make_buckets(parameters_, nn::Program::ready_order(model_), BucketLimits{}), 16,
                TrainStep::kRiders),
        weight_memory_(parts.device.allocate(layout_.elements() * sizeof(float))),
        gradient_memory_(group_->allocate(layout_.elements() * sizeof(float))),
        weights_{layout_, weight_memory_.as<float>()},
        gradients_{layout_, gradient_memory_->as<float>()},
        program_(model_, spec.batch_size, nn::ProgramMode::training, backend_, parts.device),
        optimizer_(make_optimizer(spec.optimizer, kernels_, parts.device, layout_), times_),
        in_place_(parts.device.make_stream(kernels::StreamMode::in_place)),
        stream_(*in_place_, times_),
        ddp_(*group_, *gradient_memory_, layout_, parts.device, stream_),
        step_({.device = parts.device,
               .stream = stream_,
               .kernels = kernels_,
               .program = program_,
               .weights = weights_,
               .gradients = gradients_,
               .ddp = ddp_,
               .optimizer = optimizer_},
              parts.dataset.shape()) {
    const auto drawn = nn::draw_torch_uniform(parameters_, kSeed);
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      nn::from_torch_order(parameters_[i], drawn[i], {weights_.parameter(static_cast<int>(i)), drawn[i].size()});
  }

  /// Returns the loss.
  double run(const data::Batch& batch) {
    const auto begin = std::chrono::steady_clock::now();
    const double loss = step_.run({.batch = batch,
                                   .global_samples = batch.count(),
                                   .learning_rate = kLearningRate,
                                   .deadline = Deadline::after(kPatience)});
    times_.end_step(std::chrono::steady_clock::now() - begin);
    return loss;
  }

  StepTimes& times() { return times_; }
  std::size_t program_bytes() const { return program_.memory_bytes(); }

 private:
  StepTimes times_;
  std::unique_ptr<comm::ProcessGroup> group_;
  TimedBackend backend_;
  kernels::KernelSet kernels_;
  nn::Model model_;
  std::vector<nn::Parameter> parameters_;
  nn::ArenaLayout layout_;
  kernels::Buffer weight_memory_;
  std::unique_ptr<comm::Segment> gradient_memory_;
  nn::Arena weights_;
  nn::Arena gradients_;
  nn::Program program_;
  TimedOptimizer optimizer_;
  std::unique_ptr<kernels::Stream> in_place_;
  TimedStream stream_;
  DistributedDataParallel ddp_;
  TrainStep step_;
};

}  // namespace

StepReport bench_steps(const StepBenchSpec& spec, const StepBenchParts& parts) {
  check(spec.steps > 0 && spec.warmup >= 0, "there must be steps to measure");
  PreparedBatches batches(parts.dataset, parts.device, spec.batch_size);
  TimedRank rank(spec, parts);
  StepReport report;
  for (std::int64_t step = -spec.warmup; step < spec.steps; ++step) {
    if (step == 0) {
      rank.times().clear();
      report.resident_before_bytes = resident_memory().now_bytes;
    }
    report.loss = rank.run(batches.next());
  }
  report.times = rank.times().table();
  report.program_bytes = rank.program_bytes();
  report.resident = resident_memory();
  return report;
}

}  // namespace gradring::train::bench
