// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/simt/error.h"

namespace gradring::simt::detail {

/// What one emulated thread has started and not yet waited for. It lands as late as the program allows, so that one
/// that is not waited for leaves stale data in every run.
template <class Work>
class AsyncQueue {
 public:
  void start(const Work& work) { started_.push_back({work, groups_}); }
  void commit() { ++groups_; }

  /// Calls land(work) for what belongs to the closed groups except the newest `pending`.
  template <class Land>
  void land_all_but(unsigned pending, Land land) {
    std::size_t kept = 0;
    for (const Started& one : started_) {
      if (one.group + pending < groups_)
        land(one.work);
      else
        started_[kept++] = one;
    }
    started_.resize(kept);
  }

  void clear() {
    started_.clear();
    groups_ = 0;
  }

 private:
  struct Started {
    Work work;
    unsigned group = 0;
  };
  std::vector<Started> started_;
  unsigned groups_ = 0;  // closed so far; the open one has this number
};

/// 16 bytes on their way from global to shared memory.
struct AsyncCopy {
  void* to = nullptr;
  const void* from = nullptr;
};

/// A lane's part of a warpgroup's product: what is added to its sums, from two operands that descriptors name.
struct AsyncProduct {
  void (*add)(const AsyncProduct& product) = nullptr;
  float* sums = nullptr;
  std::uint64_t a = 0, b = 0;
  Site site;
};

struct AsyncWork {
  AsyncQueue<AsyncCopy> copies;
  AsyncQueue<AsyncProduct> products;
  bool may_multiply = false;  // nothing but products has touched the sums since warpgroup_fence

  void clear() {
    copies.clear();
    products.clear();
    may_multiply = false;
  }
};

/// What the running emulated thread has started.
///
/// Errors    simt::Error in a kernel launched flat, which has no shared memory to work on.
AsyncWork& async_work_of_thread(const char* what, Site site);

}  // namespace gradring::simt::detail
