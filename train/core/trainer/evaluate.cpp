// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/evaluate.h"

#include <array>

#include "data/loader/sampler.h"
#include "train/core/input_pipeline/batch_loader.h"

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
  batches.begin_epoch(parts.stream, sampler.order(0), 0);
  const kernels::Buffer loss = parts.device.allocate(sizeof(float));
  const kernels::Buffer correct = parts.device.allocate(sizeof(std::int32_t));
  const kernels::Buffer host_loss = parts.device.allocate(sizeof(float), kernels::MemoryKind::pinned);
  const kernels::Buffer host_correct = parts.device.allocate(sizeof(std::int32_t), kernels::MemoryKind::pinned);

  nn::NoObserver no_observer;
  std::array<double, 3> sums = {0, 0, 0};  // loss, correct, samples
  while (const auto batch = batches.next(Deadline::after(parts.group.timeout()))) {
    batches.enqueue_copies(parts.stream);
    batches.enqueue_preparation(parts.stream, batch->count);
    parts.program.enqueue_forward(parts.stream, parts.weights, batches.images(), batch->count, no_observer);
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

}  // namespace gradring::train
