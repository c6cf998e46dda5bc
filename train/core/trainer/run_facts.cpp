// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/run_facts.h"

#include <optional>
#include <string>

#include "train/core/trainer/memory_plan.h"

namespace gradring::train {
namespace {

/// Does not plan the programs again: a GPU's backend takes long for that.
MemoryTable planned_memory(const RunFacts& facts) {
  return plan_memory(
      memory_plan_spec(facts.config, facts.world.device, facts.world.train_set, facts.world.group.world_size()),
      {.device = facts.world.device,
       .kernels = facts.world.kernels,
       .backend = facts.world.backend,
       .train_set = facts.world.train_set},
      {facts.replica.program().memory(), facts.evaluator.memory(),
       slots_for(facts.replica.layout(), facts.replica.program())});
}

}  // namespace

void describe(RunHeader& header, const RunFacts& facts, const TrainingProgress& progress) {
  header.precision = precision_name(facts.replica.program().dtype());
  header.model = facts.config.model;
  for (int i = 0; i < facts.replica.layout().parameters(); ++i)
    header.parameters += static_cast<std::int64_t>(facts.replica.layout().parameter(i).elements);
  header.dataset = facts.config.dataset;
  header.train_samples = facts.world.train_set.size();
  if (facts.world.validation_set) header.validation_samples = facts.world.validation_set->size();
  header.test_samples = facts.world.test_set.size();
  header.ranks = facts.world.group.world_size();
  header.global_batch = facts.sizes.global;
  header.steps_per_epoch = facts.sampler.steps();
  header.total_steps = total_steps(facts.config, facts.sampler);
  header.resumed_from = progress.steps;
  header.planned_memory = planned_memory(facts);
}

Summary summary_of(const RunFacts& facts, const TrainingProgress& progress, const RunResult& result) {
  const auto share = [](double sum, double of) { return of > 0 ? sum / of : 0; };
  const bool validates = result.selected.split == kValidationSplit;
  return {.accuracy = result.at_end.weights.accuracy,
          .loss = result.at_end.weights.loss,
          .ema_accuracy = result.at_end.averaged ? std::optional(result.at_end.averaged->accuracy) : std::nullopt,
          .validation_accuracy = validates ? std::optional(result.selected.weights.accuracy) : std::nullopt,
          .validation_loss = validates ? std::optional(result.selected.weights.loss) : std::nullopt,
          .train_loss = share(progress.epoch_loss_sum, static_cast<double>(progress.epoch_samples)),
          .steps = progress.steps,
          .seconds = progress.seconds,
          .samples_per_second = share(static_cast<double>(progress.samples), progress.seconds),
          .world_size = facts.world.group.world_size(),
          .device = shown_device(facts.world.device.id().to_string(), facts.config.simulate_gpu),
          .backend = std::string(facts.world.backend.name()),
          .precision = precision_name(facts.replica.program().dtype()),
          .parameters_sha256 = to_hex(result.weights),
          .planned_memory = planned_memory(facts),
          .peak_memory = facts.replica.memory().peaks(),
          .further_device_bytes = facts.replica.memory_of_others().total()};
}

}  // namespace gradring::train
