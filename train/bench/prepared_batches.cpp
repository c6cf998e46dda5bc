// SPDX-License-Identifier: Apache-2.0
#include "train/bench/prepared_batches.h"

#include <algorithm>
#include <span>

#include "data/transforms/normalize.h"
#include "kernels/runtime/error.h"

namespace gradring::train::bench {
namespace {

/// So many that the next one's pixels have left the caches of one core.
constexpr std::int64_t kMostBatches = 8;

data::BatchSlot fill(const data::Dataset& dataset, kernels::Device& device, std::int64_t first, std::int64_t count) {
  const auto sample = static_cast<std::size_t>(dataset.shape().elements());
  const auto samples = static_cast<std::size_t>(count);
  data::BatchSlot slot{.images = device.allocate(samples * sample * sizeof(float), kernels::MemoryKind::pinned),
                       .labels = device.allocate(samples * sizeof(std::int32_t), kernels::MemoryKind::pinned)};
  const data::Normalize normalize({}, dataset.shape()[2]);
  for (std::size_t i = 0; i < samples; ++i) {
    const auto index = first + static_cast<std::int64_t>(i);
    normalize.apply(dataset.pixels(index), std::span(slot.images.as<float>() + i * sample, sample));
    slot.labels.as<std::int32_t>()[i] = dataset.label(index);
  }
  return slot;
}

}  // namespace

PreparedBatches::PreparedBatches(const data::Dataset& dataset, kernels::Device& device, std::int64_t batch_size) {
  if (batch_size < 1 || batch_size > dataset.size())
    throw InvalidArgument("a batch cannot have " + std::to_string(batch_size) + " of " +
                          std::to_string(dataset.size()) + " samples: change --batch-size");
  const std::int64_t count = std::min(kMostBatches, dataset.size() / batch_size);
  for (std::int64_t i = 0; i < count; ++i) slots_.push_back(fill(dataset, device, i * batch_size, batch_size));
  const kernels::Shape& sample = dataset.shape();
  for (data::BatchSlot& slot : slots_)
    batches_.emplace_back(slot, owner_,
                          data::Batch::Contents{.shape = {batch_size, sample[0], sample[1], sample[2]},
                                                .position = 0,
                                                .data_wait = std::chrono::nanoseconds(0)});
}

}  // namespace gradring::train::bench
