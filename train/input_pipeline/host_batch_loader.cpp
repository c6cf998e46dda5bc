// SPDX-License-Identifier: Apache-2.0
#include "train/input_pipeline/host_batch_loader.h"

#include <utility>

#include "kernels/variant.h"

namespace gradring::train {
namespace {

/// Host batches that exist at once, and how many of them may await their copy: the loader fills the rest.
constexpr int kDepth = 4;
constexpr std::size_t kMostInFlight = 2;

}  // namespace

CopiedBatch::CopiedBatch(const BatchLoaderSpec& spec)
    : dtype_(spec.dtype),
      sample_elements_(static_cast<std::size_t>(spec.dataset.shape().elements())),
      cast_(kernels::pick_variant(spec.kernels.cast, spec.device, spec.dtype)) {
  const auto samples = static_cast<std::size_t>(spec.batch_size);
  images_ = spec.device.allocate(samples * sample_elements_ * sizeof(float));
  if (rounds()) rounded_ = spec.device.allocate(samples * sample_elements_ * kernels::size_of(dtype_));
  labels_ = spec.device.allocate(samples * sizeof(std::int32_t));
}

void CopiedBatch::enqueue_copies(kernels::Stream& stream) {
  stream.enqueue_copy(images_.data(), batch_->images().data(), batch_->images().size_bytes());
  stream.enqueue_copy(labels_.data(), batch_->labels().data(), batch_->labels().size_bytes());
}

void CopiedBatch::enqueue_preparation(kernels::Stream& stream, std::int64_t count) {
  if (!rounds()) return;
  cast_.run(stream, {.from = kernels::DType::f32,
                     .to = dtype_,
                     .x = images_.data(),
                     .y = rounded_.data(),
                     .elements = static_cast<std::size_t>(count) * sample_elements_});
}

void HostBatchLoader::begin_epoch(kernels::Stream&, std::vector<std::int64_t> order, std::int64_t position) {
  check_position(order, position);
  in_flight_.clear();
  order.erase(order.begin(), order.begin() + position);
  first_ = position;
  loader_ = std::make_unique<data::Loader>(spec_.dataset, spec_.device,
                                           data::LoaderSpec{.indices = std::move(order),
                                                            .batch_size = spec_.batch_size,
                                                            .window = spec_.window,
                                                            .normalize = spec_.normalize,
                                                            .depth = kDepth});
}

std::optional<BatchLoader::Next> HostBatchLoader::next(Deadline deadline) {
  release_copied(kMostInFlight, deadline);
  std::optional<data::Batch> batch = loader_->next(deadline);
  if (!batch) return std::nullopt;
  const Next next{.position = first_ + batch->position(), .count = batch->count(), .data_wait = batch->data_wait()};
  in_flight_.push_back({std::move(*batch), spec_.device.make_event()});
  return next;
}

void HostBatchLoader::enqueue_copies(kernels::Stream& stream) {
  batch_.set(in_flight_.back().batch);
  batch_.enqueue_copies(stream);
  stream.record(*in_flight_.back().copied);
}

void HostBatchLoader::release_copied(std::size_t at_most, Deadline deadline) {
  while (!in_flight_.empty() && in_flight_.front().copied->reached()) in_flight_.pop_front();
  while (in_flight_.size() > at_most) {
    kernels::wait(*in_flight_.front().copied, deadline);
    in_flight_.pop_front();
  }
}

}  // namespace gradring::train
