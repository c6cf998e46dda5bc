// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace gradring::kernels {

/// How many bytes are allocated now, and how many at most there ever were.
///
/// Threads   any.
class MemoryCounter {
 public:
  void add(std::size_t bytes) noexcept {
    const std::size_t now = now_.fetch_add(bytes) + bytes;
    std::size_t peak = peak_.load();
    while (peak < now && !peak_.compare_exchange_weak(peak, now)) {
    }
  }
  void remove(std::size_t bytes) noexcept { now_.fetch_sub(bytes); }

  std::size_t now_bytes() const { return now_.load(); }
  std::size_t peak_bytes() const { return peak_.load(); }

 private:
  std::atomic<std::size_t> now_ = 0;
  std::atomic<std::size_t> peak_ = 0;
};

/// Counts bytes as long as it lives: for memory that comes from elsewhere than a Device (a transport, say).
class CountedBytes {
 public:
  CountedBytes(MemoryCounter& counter, std::size_t bytes) : counter_(&counter), bytes_(bytes) { counter.add(bytes); }
  CountedBytes(CountedBytes&& other) noexcept
      : counter_(std::exchange(other.counter_, nullptr)), bytes_(other.bytes_) {}
  CountedBytes& operator=(CountedBytes&&) = delete;
  ~CountedBytes() {
    if (counter_) counter_->remove(bytes_);
  }

 private:
  MemoryCounter* counter_;
  std::size_t bytes_;
};

}  // namespace gradring::kernels
