// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/runtime/event.h"

namespace gradring::kernels {

/// Two counters: how often the event was recorded, and up to which record its stream has come.
class HostEvent final : public Event {
 public:
  bool reached() const override {
    return reached_.load(std::memory_order_acquire) >= recorded_.load(std::memory_order_acquire);
  }

  /// Notes one more record; returns its number, which the stream passes to mark_reached when it gets there.
  std::uint64_t mark_recorded() { return recorded_.fetch_add(1, std::memory_order_acq_rel) + 1; }
  void mark_reached(std::uint64_t record) { reached_.store(record, std::memory_order_release); }

  /// The newest record; a stream that waits for the event waits for this one, not for later ones.
  std::uint64_t last_record() const { return recorded_.load(std::memory_order_acquire); }
  bool reached(std::uint64_t record) const { return reached_.load(std::memory_order_acquire) >= record; }

 private:
  std::atomic<std::uint64_t> recorded_{0};
  std::atomic<std::uint64_t> reached_{0};
};

}  // namespace gradring::kernels
