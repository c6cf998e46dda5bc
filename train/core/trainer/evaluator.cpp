// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/evaluator.h"

#include <chrono>
#include <string>
#include <utility>

#include "kernels/base/error.h"
#include "train/core/trainer/from_config.h"

namespace gradring::train {

std::vector<ClassResult> class_results(std::span<const ClassCounts> classes, std::span<const std::string> names) {
  check(classes.size() == names.size(), "there is not a name of each class");
  const auto share = [](std::int64_t part, std::int64_t of) {
    return of > 0 ? std::optional(static_cast<double>(part) / static_cast<double>(of)) : std::nullopt;
  };
  std::vector<ClassResult> results;
  for (const ClassCounts& of : classes)
    results.push_back({.name = names[results.size()],
                       .samples = of.samples,
                       .precision = share(of.correct, of.predicted),
                       .recall = share(of.correct, of.samples)});
  return results;
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
          .top5_accuracy = top5_accuracy(found.weights),
          .ema_accuracy = found.averaged ? std::optional(found.averaged->accuracy) : std::nullopt,
          .ema_loss = found.averaged ? std::optional(found.averaged->loss) : std::nullopt};
}

Evaluator::Evaluator(const TrainerWorld& world, Replica& replica, EvaluatorSpec spec)
    : world_(world),
      replica_(replica),
      spec_(std::move(spec)),
      statistics_({.train_set = world.train_set,
                   .kernels = world.kernels,
                   .group = world.group,
                   .normalize = spec_.normalize,
                   .micro_batch = spec_.micro_batch,
                   .shard = spec_.shard},
                  replica),
      program_(replica.model(), kEvalBatch, nn::ProgramMode::evaluation, world.backend,
               {replica.memory().on(MemoryClass::activations), replica.memory().on(MemoryClass::workspace)},
               replica.program().dtype()),
      resident_(make_resident()) {}

std::unique_ptr<ResidentEvaluation> Evaluator::make_resident() try {
  if (!spec_.resident) return nullptr;
  return std::make_unique<ResidentEvaluation>(
      ResidentEvaluation::Parts{.device = replica_.memory().on(MemoryClass::batches),
                                .stream = replica_.stream(),
                                .kernels = world_.kernels,
                                .group = world_.group,
                                .program = program_,
                                .dataset = selecting(),
                                .normalize = spec_.normalize,
                                .recorded = spec_.recorded});
} catch (const DeviceError& error) {
  world_.metrics.remark(std::string("evaluations copy their samples to the device batch by batch: ") + error.what());
  return nullptr;
}

ModelEvaluation Evaluator::select() { return run(world_.validation_set ? kValidationSplit : kTestSplit, selecting()); }

ModelEvaluation Evaluator::at_end(const ModelEvaluation& selected) {
  ModelEvaluation found = selected.split == kTestSplit ? selected : run(kTestSplit, world_.test_set);
  if (spec_.tta == Tta::none) return found;
  if (const auto averaged = replica_.averaged_weights())
    found.averaged_tta = run_averaged(averaged->view, world_.test_set, spec_.tta);
  found.weights_tta = run_with(replica_.whole_weights().view, world_.test_set, spec_.tta);
  return found;
}

ModelEvaluation Evaluator::run(std::string_view split, const data::Dataset& dataset) {
  const auto begin = std::chrono::steady_clock::now();
  ModelEvaluation found{.split = split};
  if (const auto averaged = replica_.averaged_weights()) {
    statistics_.compute(averaged->view);
    found.averaged = run_averaged(averaged->view, dataset);
  }
  found.weights = run_with(replica_.whole_weights().view, dataset);
  found.weights.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return found;
}

Evaluation Evaluator::run_averaged(const nn::Weights& weights, const data::Dataset& dataset, Tta tta) {
  statistics_.exchange();
  const Evaluation found = run_with(weights, dataset, tta);
  statistics_.exchange();
  return found;
}

Evaluation Evaluator::run_with(const nn::Weights& weights, const data::Dataset& dataset, Tta tta) {
  if (resident_ && tta == Tta::none && &dataset == &selecting()) return resident_->run(weights);
  return evaluate({.device = replica_.memory().on(MemoryClass::batches),
                   .stream = replica_.stream(),
                   .kernels = world_.kernels,
                   .group = world_.group,
                   .program = program_,
                   .weights = weights,
                   .dataset = dataset,
                   .normalize = spec_.normalize,
                   .tta = tta,
                   .trace = world_.trace ? &world_.trace->evaluation_loader() : nullptr});
}

}  // namespace gradring::train
