// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/simt/site.h"

namespace gradring::simt::detail {

/// The copies from global to shared memory that one emulated thread has started and not yet waited for. They land as late
/// as the program allows, so that one that is not waited for reads stale data in every run.
class AsyncQueue {
 public:
  void start(void* to, const void* from) { copies_.push_back({to, from, groups_}); }
  void commit() { ++groups_; }

  /// Calls copy(to, from) for what belongs to the closed groups except the newest `pending`.
  template <class Copy>
  void land_all_but(unsigned pending, Copy copy) {
    std::size_t kept = 0;
    for (const Started& one : copies_) {
      if (one.group + pending < groups_)
        copy(one.to, one.from);
      else
        copies_[kept++] = one;
    }
    copies_.resize(kept);
  }

  void clear() {
    copies_.clear();
    groups_ = 0;
  }

 private:
  struct Started {
    void* to = nullptr;
    const void* from = nullptr;
    unsigned group = 0;
  };
  std::vector<Started> copies_;
  unsigned groups_ = 0;  // closed so far; the open one has this number
};

/// The queue of the running emulated thread.
///
/// Errors    simt::Error in a kernel launched flat, which has no shared memory to copy to.
AsyncQueue& async_queue_of_thread(Site site);

}  // namespace gradring::simt::detail
