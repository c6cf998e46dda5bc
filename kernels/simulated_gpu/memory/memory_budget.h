// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

namespace gradring::simulated_gpu {

/// Bytes that a part of a launch may take, all host threads together.
///
/// Threads   any.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes) : bytes_(bytes) {}

  /// Returns whether there is room for it, which is taken then.
  bool take(std::size_t bytes) {
    std::size_t taken = taken_.load(std::memory_order_relaxed);
    do {
      if (bytes > bytes_ - taken) return false;
    } while (!taken_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
    return true;
  }
  void give_back(std::size_t bytes) { taken_.fetch_sub(bytes, std::memory_order_relaxed); }
  bool is_half_taken() const { return taken_.load(std::memory_order_relaxed) > bytes_ / 2; }

 private:
  const std::size_t bytes_;
  std::atomic<std::size_t> taken_{0};
};

}  // namespace gradring::simulated_gpu
