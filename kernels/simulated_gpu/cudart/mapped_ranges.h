// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace gradring::simulated_gpu {

/// Addresses for memory of devices and pinned memory: pages of the process. No address is given twice, and what was given back
/// cannot be accessed any more, so a use after free is always seen.
///
/// Threads   any.
class MappedRanges {
 public:
  enum class State {
    unknown,  ///< never given: pageable memory of the host, or nothing
    live,
    freed,
  };

  /// Zeros, aligned to a page. Null if the host has no memory for it.
  void* map(std::size_t bytes);
  void release(void* data);
  State state_of(const void* address) const;

 private:
  struct Range {
    std::size_t bytes = 0;
    bool live = true;
  };

  mutable std::mutex mutex_;
  std::map<std::uintptr_t, Range> ranges_;  // by their begin
};

}  // namespace gradring::simulated_gpu
