// SPDX-License-Identifier: Apache-2.0
#include "data/loader/batch_filler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/base/error.h"

namespace gradring::data {
namespace {

/// Samples prefetched ahead: one would come too late, many would be evicted before they are read.
constexpr std::size_t kAhead = 3;

/// Parts of a batch for each thread: one that comes late leaves its parts to the others.
constexpr std::size_t kPartsOfThread = 4;

}  // namespace

BatchFiller::BatchFiller(const Dataset& dataset, const Normalize& normalize, const EpochAugmentation& augmentation,
                         int threads)
    : dataset_(dataset), mixes_(augmentation.what.mixes()) {
  check(threads >= 1, "the loader has " + std::to_string(threads) + " threads, expected 1 or more");
  augmenters_.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) augmenters_.emplace_back(dataset, normalize, augmentation);
  for (std::size_t i = 1; i < augmenters_.size(); ++i)
    helpers_.emplace_back([this, i](const std::stop_token& stop) { help(augmenters_[i], stop); });
}

bool BatchFiller::fill(std::span<const std::int64_t> indices, BatchSlot& slot, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const std::size_t parts = helpers_.empty() ? 1 : kPartsOfThread * augmenters_.size();
  job_ = {.indices = indices,
          .slot = &slot,
          .stop = stop,
          .part = std::max<std::size_t>(1, (indices.size() + parts - 1) / parts)};
  part_ready_.notify_all();  // wakes the helpers
  fill_parts(augmenters_.front(), lock);
  filled_.wait(lock, [this] { return job_.filling == 0; });  // the helper of the last part wakes us
  job_.indices = {};
  if (job_.error) std::rethrow_exception(std::exchange(job_.error, nullptr));
  return !stop.stop_requested();
}

void BatchFiller::help(Augmenter& augmenter, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (part_ready_.wait(lock, stop, [this] { return has_part(); })) fill_parts(augmenter, lock);
}

void BatchFiller::fill_parts(Augmenter& augmenter, std::unique_lock<std::mutex>& lock) {
  while (has_part()) {
    const Job part = job_;
    job_.begin += job_.part;
    ++job_.filling;
    lock.unlock();
    std::exception_ptr error;
    try {
      fill_part(augmenter, part);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) job_.error = error;
    if (--job_.filling == 0) filled_.notify_all();
  }
}

void BatchFiller::fill_part(Augmenter& augmenter, const Job& job) const {
  const auto elements = static_cast<std::size_t>(dataset_.shape().elements());
  const std::size_t end = std::min(job.begin + job.part, job.indices.size());
  for (std::size_t i = job.begin; i < end; ++i) {
    if (job.stop.stop_requested()) return;
    if (i + kAhead < end) augmenter.prefetch(job.indices[i + kAhead]);
    const std::span image(job.slot->images.as<float>() + i * elements, elements);
    const MixedLabel label = augmenter.write(job.indices[i], image);
    job.slot->labels.as<std::int32_t>()[i] = label.label;
    if (!mixes_) continue;
    job.slot->labels_b.as<std::int32_t>()[i] = label.label_b;
    job.slot->weights_b.as<float>()[i] = label.weight_b;
  }
}

}  // namespace gradring::data
