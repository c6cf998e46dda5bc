// SPDX-License-Identifier: Apache-2.0
#include "data/loader/loader.h"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "kernels/base/deadline.h"
#include "kernels/base/error.h"

namespace gradring::data {
/// The thread and what it shares with the caller. A slot is free, being filled by the thread, ready (in order), or lent
/// to the caller.
class Loader::Worker final : public BatchOwner {
 public:
  Worker(const Dataset& dataset, kernels::Device& device, LoaderSpec spec)
      : dataset_(dataset),
        spec_(std::move(spec)),
        normalize_(spec_.normalize, dataset.shape()[2]),
        filler_(dataset, normalize_, spec_.augmentation, spec_.threads),
        slots_(checked_depth(spec_.depth)) {
    check(spec_.batch_size >= 1, "the batch size is " + std::to_string(spec_.batch_size) + ", expected 1 or more");
    const auto samples = static_cast<std::size_t>(std::min(spec_.batch_size, geometry().samples));
    const auto sample_elements = static_cast<std::size_t>(dataset.shape().elements());
    free_.reserve(slots_.size());
    for (BatchSlot& slot : slots_) {
      slot.images = device.allocate(samples * sample_elements * sizeof(float), kernels::MemoryKind::pinned);
      slot.labels = device.allocate(samples * sizeof(std::int32_t), kernels::MemoryKind::pinned);
      if (spec_.augmentation.what.mixes()) {
        slot.labels_b = device.allocate(samples * sizeof(std::int32_t), kernels::MemoryKind::pinned);
        slot.weights_b = device.allocate(samples * sizeof(float), kernels::MemoryKind::pinned);
      }
      free_.push_back(&slot);
    }
    thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
  }

  BatchGeometry geometry() const {
    return {.samples = static_cast<std::int64_t>(spec_.indices.size()),
            .batch_size = spec_.batch_size,
            .window = spec_.window};
  }

  std::optional<Batch> next(Deadline deadline) {
    const std::int64_t step = next_step_;
    if (step == geometry().steps()) return std::nullopt;
    const auto asked = Deadline::Clock::now();
    BatchSlot& slot = take_ready(deadline);
    ++next_step_;
    const std::int64_t begin = geometry().begin(step);
    return Batch(slot, *this,
                 {.shape = batch_shape(geometry().end(step) - begin),
                  .position = begin,
                  .data_wait = Deadline::Clock::now() - asked});
  }

  void give_back(BatchSlot& slot) noexcept override {
    {
      std::lock_guard lock(mutex_);
      free_.push_back(&slot);  // has capacity for all of them
      --lent_;
    }
    changed_.notify_all();  // wakes the thread if it has no slot to fill
  }

 private:
  static std::size_t checked_depth(int depth) {
    check(depth >= 1, "the loader depth is " + std::to_string(depth) + ", expected 1 or more");
    return static_cast<std::size_t>(depth);
  }

  kernels::Shape batch_shape(std::int64_t count) const {
    const kernels::Shape sample = dataset_.shape();
    return {count, sample[0], sample[1], sample[2]};
  }

  std::span<const std::int64_t> indices_of(std::int64_t step) const {
    const auto begin = static_cast<std::size_t>(geometry().begin(step));
    const auto end = static_cast<std::size_t>(geometry().end(step));
    return std::span(spec_.indices).subspan(begin, end - begin);
  }

  BatchSlot& take_ready(Deadline deadline) {
    std::unique_lock lock(mutex_);
    check(lent_ < slots_.size(),
          "all " + std::to_string(slots_.size()) + " batches of the loader are held: release one or raise the depth");
    // The thread wakes us, with a batch or with an error.
    const bool arrived = wait_until(changed_, lock, deadline, [&] { return !ready_.empty() || error_; });
    check<Error>(arrived, "the loader had no batch ready before the deadline");
    if (ready_.empty()) std::rethrow_exception(error_);
    BatchSlot* slot = ready_.front();
    ready_.pop_front();
    ++lent_;
    return *slot;
  }

  void run(const std::stop_token& stop) {
    try {
      for (std::int64_t step = 0; step < geometry().steps(); ++step) {
        BatchSlot* slot = take_free(stop);
        if (!slot || !fill(*slot, indices_of(step), stop)) return;
        {
          std::lock_guard lock(mutex_);
          ready_.push_back(slot);
        }
        changed_.notify_all();  // wakes the caller in take_ready
      }
    } catch (...) {
      std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      changed_.notify_all();
    }
  }

  /// Its event is on the track before the caller has the batch, and with it the end of the epoch.
  bool fill(BatchSlot& slot, std::span<const std::int64_t> indices, const std::stop_token& stop) {
    const kernels::TraceScope traced(spec_.trace, kernels::TraceCategory::loader, "prepare batch",
                                     {std::ssize(indices)});
    return filler_.fill(indices, slot, stop);
  }

  /// Waits until the caller gives a slot back; null if the loader is being destroyed.
  BatchSlot* take_free(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [&] { return !free_.empty(); })) return nullptr;
    BatchSlot* slot = free_.back();
    free_.pop_back();
    return slot;
  }

  const Dataset& dataset_;
  const LoaderSpec spec_;
  const Normalize normalize_;
  BatchFiller filler_;          // used by the thread only
  std::int64_t next_step_ = 0;  // used by the caller only

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<BatchSlot> slots_;
  std::vector<BatchSlot*> free_;
  std::deque<BatchSlot*> ready_;
  std::size_t lent_ = 0;
  std::exception_ptr error_;

  std::jthread thread_;  // last: stops and joins before the members it uses are destroyed
};

Loader::Loader(const Dataset& dataset, kernels::Device& device, LoaderSpec spec)
    : worker_(std::make_unique<Worker>(dataset, device, std::move(spec))) {}

Loader::~Loader() = default;

std::optional<Batch> Loader::next(Deadline deadline) { return worker_->next(deadline); }

BatchGeometry Loader::geometry() const { return worker_->geometry(); }

}  // namespace gradring::data
