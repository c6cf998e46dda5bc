// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/evaluator.h"

#include <array>
#include <chrono>
#include <string>

#include "data/loader/sampler.h"
#include "train/core/trainer/from_config.h"

namespace gradring::train {

Evaluation evaluate(const EvaluationParts& parts) {
  const data::SequentialShard sampler(
      {.samples = parts.dataset.size(), .rank = parts.group.rank(), .world_size = parts.group.world_size()});
  HostBatchLoader batches({.dataset = parts.dataset,
                           .device = parts.device,
                           .kernels = parts.kernels,
                           .batch_size = parts.program.max_batch(),
                           .dtype = parts.program.dtype(),
                           .trace = parts.trace});
  batches.begin_epoch(parts.stream, 0, sampler.order(0), 0);
  const kernels::Buffer loss = parts.device.allocate(sizeof(float));
  const kernels::Buffer correct = parts.device.allocate(sizeof(std::int32_t));
  const kernels::Buffer host_loss = parts.device.allocate(sizeof(float), kernels::MemoryKind::pinned);
  const kernels::Buffer host_correct = parts.device.allocate(sizeof(std::int32_t), kernels::MemoryKind::pinned);

  nn::NoObserver no_observer;
  std::array<double, 3> sums = {0, 0, 0};  // loss, correct, samples
  while (const auto batch = batches.next(Deadline::after(parts.group.timeout()))) {
    batches.enqueue_copies(parts.stream);
    batches.enqueue_preparation(parts.stream, batch->count);
    parts.program.enqueue_forward(parts.stream, parts.weights, {.x = batches.images(), .samples = batch->count},
                                  no_observer);
    parts.program.enqueue_loss(
        parts.stream,
        {.labels = batches.labels(), .loss_sum = loss.as<float>(), .correct = correct.as<std::int32_t>()});
    parts.stream.enqueue_copy(host_loss.data(), loss.data(), sizeof(float));
    parts.stream.enqueue_copy(host_correct.data(), correct.data(), sizeof(std::int32_t));
    parts.stream.synchronize(parts.group.after_collectives());
    sums[0] += *host_loss.as<float>();
    sums[1] += *host_correct.as<std::int32_t>();
    sums[2] += static_cast<double>(batch->count);
    parts.batch_done(batch->count);
  }
  parts.group.all_reduce_on_host(sums);
  return {.accuracy = sums[1] / sums[2],
          .loss = sums[0] / sums[2],
          .samples = static_cast<std::int64_t>(sums[2]),
          .correct = static_cast<std::int64_t>(sums[1])};
}

EvalRecord eval_record(const ModelEvaluation& found, std::int64_t step, std::int64_t epoch, bool ends_epoch) {
  return {.step = step,
          .epoch = epoch,
          .ends_epoch = ends_epoch,
          .split = std::string(found.split),
          .accuracy = found.weights.accuracy,
          .loss = found.weights.loss,
          .samples = found.weights.samples,
          .seconds = found.weights.seconds,
          .ema_accuracy = found.averaged ? std::optional(found.averaged->accuracy) : std::nullopt,
          .ema_loss = found.averaged ? std::optional(found.averaged->loss) : std::nullopt};
}

Evaluator::Evaluator(const TrainerWorld& world, Replica& replica)
    : world_(world),
      replica_(replica),
      program_(replica.model(), kEvalBatch, nn::ProgramMode::evaluation, world.backend,
               {replica.memory().on(MemoryClass::activations), replica.memory().on(MemoryClass::workspace)},
               replica.program().dtype()) {}

ModelEvaluation Evaluator::select() {
  return world_.validation_set ? run(kValidationSplit, *world_.validation_set) : run(kTestSplit, world_.test_set);
}

ModelEvaluation Evaluator::at_end(const ModelEvaluation& selected) {
  return selected.split == kTestSplit ? selected : run(kTestSplit, world_.test_set);
}

ModelEvaluation Evaluator::run(std::string_view split, const data::Dataset& dataset) {
  const auto begin = std::chrono::steady_clock::now();
  ModelEvaluation found{.split = split};
  if (const auto averaged = replica_.averaged_weights()) found.averaged = run_with(averaged->view, dataset);
  found.weights = run_with(replica_.whole_weights().view, dataset);
  found.weights.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return found;
}

Evaluation Evaluator::run_with(const nn::Weights& weights, const data::Dataset& dataset) {
  return evaluate({.device = replica_.memory().on(MemoryClass::batches),
                   .stream = replica_.stream(),
                   .kernels = world_.kernels,
                   .group = world_.group,
                   .program = program_,
                   .weights = weights,
                   .dataset = dataset,
                   .trace = world_.trace ? &world_.trace->evaluation_loader() : nullptr});
}

}  // namespace gradring::train
