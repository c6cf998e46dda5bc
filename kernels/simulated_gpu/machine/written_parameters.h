// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>
#include <set>
#include <vector>

namespace gradring::simulated_gpu {

/// Which parameters of a kernel point to allocations that its earlier launches wrote.
///
/// Threads   any.
class WrittenParameters {
 public:
  /// `offset`: bytes, in the parameters.
  void add(std::size_t offset) {
    const std::lock_guard lock(mutex_);
    offsets_.insert(offset);
  }
  std::vector<std::size_t> offsets() const {
    const std::lock_guard lock(mutex_);
    return {offsets_.begin(), offsets_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::size_t> offsets_;
};

}  // namespace gradring::simulated_gpu
