// SPDX-License-Identifier: Apache-2.0
#include "train/feed/loader_feed.h"

#include <utility>

namespace gradring::train {
namespace {

/// Batches that exist at once, and how many of them may wait for their copy: the rest is the loader's to fill.
constexpr int kDepth = 4;
constexpr std::size_t kMostLent = 2;

}  // namespace

LoaderFeed::LoaderFeed(const FeedSpec& spec)
    : spec_(spec), batch_(spec.device, spec.kernels, spec.dataset.shape(), spec.batch_size, spec.dtype) {}

void LoaderFeed::begin_epoch(kernels::Stream&, std::vector<std::int64_t> order, std::int64_t position) {
  check_position(order, position);
  lent_.clear();
  order.erase(order.begin(), order.begin() + position);
  first_ = position;
  loader_ = std::make_unique<data::Loader>(spec_.dataset, spec_.device,
                                           data::LoaderSpec{.indices = std::move(order),
                                                            .batch_size = spec_.batch_size,
                                                            .window = spec_.window,
                                                            .normalize = spec_.normalize,
                                                            .depth = kDepth});
}

std::optional<BatchFeed::Next> LoaderFeed::next(Deadline deadline) {
  give_back(kMostLent, deadline);
  std::optional<data::Batch> batch = loader_->next(deadline);
  if (!batch) return std::nullopt;
  const Next next{.position = first_ + batch->position(), .count = batch->count(), .data_wait = batch->data_wait()};
  lent_.push_back({std::move(*batch), spec_.device.make_event()});
  return next;
}

void LoaderFeed::enqueue_copies(kernels::Stream& stream) {
  batch_.set(lent_.back().batch);
  batch_.enqueue_copies(stream);
  stream.record(*lent_.back().copied);
}

void LoaderFeed::give_back(std::size_t at_most, Deadline deadline) {
  while (!lent_.empty() && lent_.front().copied->reached()) lent_.pop_front();
  while (lent_.size() > at_most) {
    kernels::wait(*lent_.front().copied, deadline);
    lent_.pop_front();
  }
}

}  // namespace gradring::train
