// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>

#include "kernels/runtime/deadline.h"
#include "kernels/runtime/event.h"

namespace gradring::kernels {

/// Two counters: how often the event was recorded, and up to which record its stream has come. If the stream fails
/// before it gets there, whoever asks for the event receives the stream's error: otherwise they would wait for their
/// deadline and never learn the cause.
class HostEvent final : public Event {
 public:
  /// Who saw that it is reached may destroy it while the stream is still about to wake who sleeps in wait.
  ~HostEvent() override { const std::lock_guard lock(mutex_); }

  /// Errors    the error of the stream that recorded it, if that failed first.
  bool reached() const override { return reached(last_record()); }

  /// Notes one more record; returns its number, which the stream passes to mark_reached when it gets there.
  std::uint64_t mark_recorded() { return recorded_.fetch_add(1, std::memory_order_acq_rel) + 1; }
  void mark_reached(std::uint64_t record) {
    std::lock_guard lock(mutex_);
    reached_.store(record, std::memory_order_release);
    changed_.notify_all();  // wakes streams in wait
  }
  void mark_failed(std::exception_ptr failure) {
    std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    failed_.store(true, std::memory_order_release);
    changed_.notify_all();
  }

  /// The newest record; a stream that waits for the event waits for this one, not for later ones.
  std::uint64_t last_record() const { return recorded_.load(std::memory_order_acquire); }
  bool reached(std::uint64_t record) const {
    if (reached_.load(std::memory_order_acquire) >= record) return true;
    if (failed_.load(std::memory_order_acquire)) rethrow();
    return false;
  }

  /// Blocks until the record is reached: looks for a moment, for most waits are short, and then sleeps.
  ///
  /// Returns   false if the deadline passed first.
  /// Errors    as reached.
  bool wait(std::uint64_t record, Deadline deadline) const {
    constexpr int kLooks = 200;
    for (int look = 0; look < kLooks; ++look)
      if (reached(record)) return true;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, deadline.remaining(), [&] {
      return reached_.load(std::memory_order_acquire) >= record || failed_.load(std::memory_order_acquire);
    });
    lock.unlock();
    return reached(record);
  }

 private:
  [[noreturn]] void rethrow() const {
    std::lock_guard lock(mutex_);
    std::rethrow_exception(failure_);
  }

  std::atomic<std::uint64_t> recorded_{0};
  std::atomic<std::uint64_t> reached_{0};
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::exception_ptr failure_;
};

}  // namespace gradring::kernels
