// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/evaluator.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "data/loader/sampler.h"
#include "kernels/base/error.h"
#include "kernels/lib/reference.h"
#include "train/core/input_pipeline/batch_loader.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/test_views.h"

namespace gradring::train {

namespace {

/// Brings the logits of batches to the host.
class BatchLogits {
 public:
  BatchLogits(const EvaluationParts& parts, HostBatchLoader& batches);

  /// Judges the loader's batch.
  void run(std::int64_t count);
  /// [samples, classes] of the last batch: those of its images, or the mean of several views'.
  std::span<const double> logits() const { return logits_; }
  /// Of the last batch.
  double loss_sum() const { return loss_sum_; }

 private:
  void run_view(const TestView& view, std::int64_t count);
  std::vector<double> forward(std::int64_t count);
  double loss_of_mean() const;

  const EvaluationParts& parts_;
  HostBatchLoader& batches_;
  std::span<const TestView> views_;
  kernels::Buffer loss_, correct_;  // on the device
  kernels::Buffer host_loss_, host_logits_;
  kernels::Buffer view_;  // pinned; empty if the images themselves are the only view
  std::vector<double> logits_;
  double loss_sum_ = 0;
};

BatchLogits::BatchLogits(const EvaluationParts& parts, HostBatchLoader& batches)
    : parts_(parts),
      batches_(batches),
      views_(test_views(parts.tta)),
      loss_(parts.device.allocate(sizeof(float))),
      correct_(parts.device.allocate(sizeof(std::int32_t))),
      host_loss_(parts.device.allocate(sizeof(float), kernels::MemoryKind::pinned)),
      host_logits_(parts.device.allocate(static_cast<std::size_t>(parts.program.max_batch() * parts.dataset.classes()) *
                                             kernels::size_of(parts.program.dtype()),
                                         kernels::MemoryKind::pinned)) {
  if (views_.size() > 1)
    view_ = parts.device.allocate(
        static_cast<std::size_t>(parts.program.max_batch() * parts.dataset.shape().elements()) * sizeof(float),
        kernels::MemoryKind::pinned);
}

void BatchLogits::run(std::int64_t count) {
  batches_.enqueue_copies(parts_.stream);
  if (views_.size() == 1) {
    logits_ = forward(count);
    loss_sum_ = *host_loss_.as<float>();
    return;
  }
  logits_.assign(static_cast<std::size_t>(count * parts_.dataset.classes()), 0);
  for (const TestView& view : views_) run_view(view, count);
  loss_sum_ = loss_of_mean();
}

/// forward() has completed the copy of the view before.
void BatchLogits::run_view(const TestView& view, std::int64_t count) {
  if (!view.is_identity()) {
    const std::span<const float> images = batches_.host_batch().images();
    write_view(view, parts_.dataset.shape(), images, view_.as<float>());
    batches_.enqueue_images(parts_.stream, {view_.as<float>(), images.size()});
  }
  const std::vector<double> logits = forward(count);
  for (std::size_t i = 0; i < logits.size(); ++i) logits_[i] += view.weight * logits[i];
}

std::vector<double> BatchLogits::forward(std::int64_t count) {
  nn::NoObserver no_observer;
  const kernels::DType dtype = parts_.program.dtype();
  const auto elements = static_cast<std::size_t>(count * parts_.dataset.classes());
  batches_.enqueue_preparation(parts_.stream, count);
  parts_.program.enqueue_forward(parts_.stream, parts_.weights, {.x = batches_.images(), .samples = count},
                                 no_observer);
  parts_.program.enqueue_loss(
      parts_.stream,
      {.labels = batches_.labels(), .loss_sum = loss_.as<float>(), .correct = correct_.as<std::int32_t>()});
  parts_.stream.enqueue_copy(host_loss_.data(), loss_.data(), sizeof(float));
  parts_.stream.enqueue_copy(host_logits_.data(), parts_.program.logits(), elements * kernels::size_of(dtype));
  parts_.stream.synchronize(parts_.group.after_collectives());
  return kernels::lib::read_values(dtype, host_logits_.data(), elements);
}

double BatchLogits::loss_of_mean() const {
  const auto classes = static_cast<std::size_t>(parts_.dataset.classes());
  double loss = 0;
  std::size_t begin = 0;
  for (const std::int32_t label : batches_.host_batch().labels()) {
    const auto row = std::span(logits_).subspan(begin, classes);
    begin += classes;
    const double most = *std::ranges::max_element(row);
    double sum = 0;
    for (const double logit : row) sum += std::exp(logit - most);
    loss += most + std::log(sum) - row[static_cast<std::size_t>(label)];
  }
  return loss;
}

}  // namespace

Evaluation evaluate(const EvaluationParts& parts) {
  const data::SequentialShard sampler(
      {.samples = parts.dataset.size(), .rank = parts.group.rank(), .world_size = parts.group.world_size()});
  HostBatchLoader batches({.dataset = parts.dataset,
                           .device = parts.device,
                           .kernels = parts.kernels,
                           .batch_size = parts.program.max_batch(),
                           .dtype = parts.program.dtype(),
                           .normalize = parts.normalize,
                           .trace = parts.trace});
  batches.begin_epoch(parts.stream, 0, sampler.order(0), 0);
  BatchLogits batch_logits(parts, batches);
  Tally tally(parts.dataset.classes());
  std::array<double, 1> loss = {0};
  while (const auto batch = batches.next(Deadline::after(parts.group.timeout()))) {
    batch_logits.run(batch->count);
    loss[0] += batch_logits.loss_sum();
    tally.add(batch_logits.logits(), batches.host_batch().labels());
    parts.batch_done(batch_logits.logits());
  }
  std::vector<std::int64_t> counts = tally.counts();
  parts.group.all_reduce_on_host(loss);
  parts.group.all_reduce_on_host(std::span(counts));
  tally.set_counts(counts);
  const auto samples = static_cast<double>(tally.samples());
  Evaluation evaluation{.accuracy = static_cast<double>(tally.correct()) / samples,
                        .loss = loss[0] / samples,
                        .samples = tally.samples(),
                        .correct = tally.correct(),
                        .classes = {tally.classes().begin(), tally.classes().end()}};
  if (parts.dataset.classes() > Tally::kTop) evaluation.correct_in_top = tally.correct_in_top();
  return evaluation;
}

std::optional<double> top5_accuracy(const Evaluation& evaluation) {
  if (!evaluation.correct_in_top) return std::nullopt;
  return static_cast<double>(*evaluation.correct_in_top) / static_cast<double>(evaluation.samples);
}

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

Evaluator::Evaluator(const TrainerWorld& world, Replica& replica, data::NormalizeSpec normalize, Tta tta)
    : world_(world),
      replica_(replica),
      normalize_(std::move(normalize)),
      tta_(tta),
      statistics_(
          {.train_set = world.train_set, .kernels = world.kernels, .group = world.group, .normalize = normalize_},
          replica),
      program_(replica.model(), kEvalBatch, nn::ProgramMode::evaluation, world.backend,
               {replica.memory().on(MemoryClass::activations), replica.memory().on(MemoryClass::workspace)},
               replica.program().dtype()) {}

ModelEvaluation Evaluator::select() {
  return world_.validation_set ? run(kValidationSplit, *world_.validation_set) : run(kTestSplit, world_.test_set);
}

ModelEvaluation Evaluator::at_end(const ModelEvaluation& selected) {
  ModelEvaluation found = selected.split == kTestSplit ? selected : run(kTestSplit, world_.test_set);
  if (tta_ == Tta::none) return found;
  if (const auto averaged = replica_.averaged_weights())
    found.averaged_tta = run_averaged(averaged->view, world_.test_set, tta_);
  found.weights_tta = run_with(replica_.whole_weights().view, world_.test_set, tta_);
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
  return evaluate({.device = replica_.memory().on(MemoryClass::batches),
                   .stream = replica_.stream(),
                   .kernels = world_.kernels,
                   .group = world_.group,
                   .program = program_,
                   .weights = weights,
                   .dataset = dataset,
                   .normalize = normalize_,
                   .tta = tta,
                   .trace = world_.trace ? &world_.trace->evaluation_loader() : nullptr});
}

}  // namespace gradring::train
