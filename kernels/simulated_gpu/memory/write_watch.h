// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace gradring::simulated_gpu {

/// Notes who writes a range of global memory: finds the instruction behind a wrong result that breaks no rule.
///
/// Threads   any.
/// Cost      one comparison for each write of a warp while nothing is watched.
class WriteWatch {
 public:
  struct Writes {
    std::uint64_t count = 0;
    std::string last;  ///< who wrote last: a thread and its instruction, or a copy
  };

  /// Forgets what was noted. No bytes: nothing is watched.
  void begin(std::uint64_t address, std::size_t bytes);
  bool touches(std::uint64_t address, std::size_t bytes) const {
    return address < end_.load(std::memory_order_relaxed) && first_.load(std::memory_order_relaxed) < address + bytes;
  }
  void note(std::string writer);
  Writes writes() const;

 private:
  std::atomic<std::uint64_t> first_{0};
  std::atomic<std::uint64_t> end_{0};
  mutable std::mutex mutex_;  // of writes_
  Writes writes_;
};

}  // namespace gradring::simulated_gpu
