// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/resident_evaluation.h"

#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <utility>

#include "data/loader/random_split.h"
#include "data/loader/sampler.h"
#include "kernels/base/error.h"
#include "kernels/lib/variant.h"

namespace gradring::train {
namespace {

/// Weights and averaged weights. With ZeRO 3 both are gathered into new memory for each evaluation.
constexpr std::size_t kMostWeights = 2;

bool same_addresses(const nn::Weights& a, const nn::Weights& b) {
  return a.buckets == b.buckets && a.frozen == b.frozen && a.buffers == b.buffers;
}

std::vector<std::int64_t> order_of(const data::Dataset& dataset, const comm::ProcessGroup& group) {
  return data::SequentialShard({.samples = dataset.size(), .rank = group.rank(), .world_size = group.world_size()})
      .order(0);
}

/// Holds the data set without owning it.
std::shared_ptr<const data::Dataset> not_owned(const data::Dataset& dataset) {
  return {std::shared_ptr<const data::Dataset>(), &dataset};
}

}  // namespace

ResidentShard::ResidentShard(const BatchLoaderSpec& spec, const comm::ProcessGroup& group, kernels::Stream& stream,
                             Deadline deadline) {
  const data::Subset shard(not_owned(spec.dataset), order_of(spec.dataset, group));
  for (std::int64_t i = 0; i < shard.size(); ++i) order_.push_back(i);
  batches_ = std::make_unique<ResidentBatchLoader>(BatchLoaderSpec{.dataset = shard,
                                                                   .device = spec.device,
                                                                   .kernels = spec.kernels,
                                                                   .batch_size = spec.batch_size,
                                                                   .dtype = spec.dtype,
                                                                   .normalize = spec.normalize},
                                                   stream, deadline);
}

ResidentEvaluation::ResidentEvaluation(const Parts& parts)
    : parts_(parts),
      classes_(parts.dataset.classes()),
      tally_(kernels::pick_variant(parts.kernels.tally, parts.device, parts.program.dtype())),
      shard_({.dataset = parts.dataset,
              .device = parts.device,
              .kernels = parts.kernels,
              .batch_size = parts.program.max_batch(),
              .dtype = parts.program.dtype(),
              .normalize = parts.normalize},
             parts.group, parts.stream, Deadline::after(parts.group.timeout())),
      loss_(parts.device.allocate(sizeof(float))),
      correct_(parts.device.allocate(sizeof(std::int32_t))),
      sums_(parts.device.allocate(evaluation_sums_bytes(classes_))),
      host_sums_(parts.device.allocate(sums_.size(), kernels::MemoryKind::pinned)) {}

void ResidentEvaluation::enqueue_batch(const nn::Weights& weights, std::int64_t count) {
  nn::NoObserver no_observer;
  BatchLoader& batches = shard_.batches();
  batches.enqueue_preparation(parts_.stream, count);
  parts_.program.enqueue_forward(parts_.stream, weights, {.x = batches.images(), .samples = count}, no_observer);
  parts_.program.enqueue_loss(
      parts_.stream,
      {.labels = batches.labels(), .loss_sum = loss_.as<float>(), .correct = correct_.as<std::int32_t>()});
  tally_.run(parts_.stream, {.dtype = parts_.program.dtype(),
                             .rows = count,
                             .classes = classes_,
                             .logits = parts_.program.logits(),
                             .labels = batches.labels(),
                             .loss = loss_.as<float>(),
                             .loss_sum = sums_.as<double>(),
                             .counts = reinterpret_cast<std::int64_t*>(sums_.data() + sizeof(double))});
}

ResidentEvaluation::OfWeights& ResidentEvaluation::recordings_of(const nn::Weights& weights) {
  const auto known = std::ranges::find_if(
      recordings_, [&](const OfWeights& recordings) { return same_addresses(recordings.weights, weights); });
  if (known != recordings_.end()) return *known;
  if (recordings_.size() == kMostWeights) recordings_.pop_front();
  return recordings_.emplace_back(weights);
}

void ResidentEvaluation::enqueue_recorded(OfWeights& recordings, std::int64_t count) {
  if (seen_.insert(count).second) return enqueue_batch(recordings.weights, count);
  auto& recording = recordings.of_count[count];
  if (!recording) try {
      recording = parts_.device.record(parts_.stream,
                                       [this, weights = recordings.weights, count] { enqueue_batch(weights, count); });
    } catch (const DeviceError& error) {
      throw DeviceError(std::string("a batch of the evaluation could not be captured into a CUDA graph: ") +
                        error.what() + "; --cuda-graph off runs every batch without one");
    }
  recording->enqueue(parts_.stream);
}

Evaluation ResidentEvaluation::run(const nn::Weights& weights) {
  parts_.stream.enqueue_zero(sums_.data(), sums_.size());
  shard_.begin(parts_.stream);
  OfWeights& recordings = recordings_of(weights);
  std::deque<std::unique_ptr<kernels::Event>> enqueued;
  while (const auto batch = shard_.batches().next(Deadline::after(parts_.group.timeout()))) {
    parts_.recorded ? enqueue_recorded(recordings, batch->count) : enqueue_batch(weights, batch->count);
    enqueued.push_back(parts_.device.make_event());
    parts_.stream.record(*enqueued.back());
    if (enqueued.size() <= kMostAhead) continue;
    kernels::wait(*enqueued.front(), parts_.group.after_collectives());
    enqueued.pop_front();
  }
  parts_.stream.enqueue_copy(host_sums_.data(), sums_.data(), sums_.size());
  parts_.stream.synchronize(parts_.group.after_collectives());
  Tally tally(classes_);
  tally.set_counts({reinterpret_cast<const std::int64_t*>(host_sums_.data() + sizeof(double)),
                    static_cast<std::size_t>(kernels::tally::counts_of(classes_))});
  check(tally.samples() == shard_.samples(), "a label is not one of the classes");
  return over_all_ranks(parts_.group, *host_sums_.as<double>(), std::move(tally));
}

}  // namespace gradring::train
