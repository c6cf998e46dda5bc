// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/evaluator.h"

#include <chrono>
#include <string>

#include "train/core/trainer/from_config.h"

namespace gradring::train {

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
