// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace gradring::simulated_gpu {

/// Addresses for memory of devices and pinned memory: pages of the process. No address is given twice, and what was
/// given back cannot be accessed any more, so a use after free is always seen. Behind each range is a page that is no
/// memory. Of more than kMostGuarded live ranges, that is true for kernels and copies alone, as the system allows a
/// process 65,530 parts of memory that differ (vm.max_map_count): the host may access what was given back.
///
/// Threads   any.
class MappedRanges {
 public:
  enum class State {
    unknown,  ///< never given: pageable memory of the host, or nothing
    live,     ///< also what is behind the range, in its last page and the next
    freed,
  };

  /// Zeros, aligned to a page. Null if the host has no memory for it.
  void* map(std::size_t bytes);
  void release(void* data);
  State state_of(const void* address) const {
    const std::lock_guard lock(mutex_);
    const auto found = find(address);
    if (found == ranges_.end()) return State::unknown;
    return found->second.live ? State::live : State::freed;
  }
  /// Of the range with this address; 0 without such a range.
  std::uintptr_t begin_of(const void* address) const {
    const std::lock_guard lock(mutex_);
    const auto found = find(address);
    return found == ranges_.end() ? 0 : found->first;
  }
  /// Prints that the host accesses the address, if it was freed. For a signal handler: allocates nothing.
  void print_access_to_freed(std::uintptr_t address) const;

 private:
  struct Range {
    std::size_t bytes = 0;  // with that page
    bool live = true;
    bool is_guarded = true;
  };
  static constexpr std::size_t kMostGuarded = 24576;

  using Ranges = std::map<std::uintptr_t, Range>;
  /// The end without such a range.
  Ranges::const_iterator find(const void* address) const;

  mutable std::mutex mutex_;
  Ranges ranges_;  // by their begin
  std::size_t guarded_ = 0;
};

}  // namespace gradring::simulated_gpu
