// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "data/loader/sampler.h"
#include "kernels/lib/reference.h"
#include "train/core/input_pipeline/batch_loader.h"
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
  batches.begin_epoch(parts.stream, {.order = sampler.order(0)});
  BatchLogits batch_logits(parts, batches);
  Tally tally(parts.dataset.classes());
  double loss_sum = 0;
  while (const auto batch = batches.next(Deadline::after(parts.group.timeout()))) {
    batch_logits.run(batch->count);
    loss_sum += batch_logits.loss_sum();
    tally.add(batch_logits.logits(), batches.host_batch().labels());
    parts.batch_done(batch_logits.logits());
  }
  return over_all_ranks(parts.group, loss_sum, std::move(tally));
}

Evaluation over_all_ranks(comm::ProcessGroup& group, double loss_sum, Tally tally) {
  std::array<double, 1> loss = {loss_sum};
  std::vector<std::int64_t> counts = tally.counts();
  group.all_reduce_on_host(loss);
  group.all_reduce_on_host(std::span(counts));
  tally.set_counts(counts);
  const auto samples = static_cast<double>(tally.samples());
  Evaluation evaluation{.accuracy = static_cast<double>(tally.correct()) / samples,
                        .loss = loss[0] / samples,
                        .samples = tally.samples(),
                        .correct = tally.correct(),
                        .classes = {tally.classes().begin(), tally.classes().end()}};
  if (std::ssize(tally.classes()) > Tally::kTop) evaluation.correct_in_top = tally.correct_in_top();
  return evaluation;
}

std::optional<double> top5_accuracy(const Evaluation& evaluation) {
  if (!evaluation.correct_in_top) return std::nullopt;
  return static_cast<double>(*evaluation.correct_in_top) / static_cast<double>(evaluation.samples);
}

}  // namespace gradring::train
