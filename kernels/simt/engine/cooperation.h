// SPDX-License-Identifier: Apache-2.0
// What CUDA's barriers and warp intrinsics (kernels/simt/cpu) call. Each parks the calling emulated thread until its
// partners have come; `what` is the intrinsic's name, for messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/simt/engine/error.h"

namespace gradring::simt::detail {

/// Waits for the whole block; returns for how many threads `predicate` held.
unsigned block_barrier(const char* what, bool predicate, Site site);
void warp_barrier(const char* what, std::uint32_t mask, Site site);

// Barriers that the program places in shared memory; see Mbarriers in engine/block.h.
void mbarrier_init(const void* barrier, unsigned arrivals, Site site);
void mbarrier_arrive(const char* what, const void* barrier, std::int64_t expected_bytes, Site site);
void mbarrier_land(const char* what, const void* barrier, std::int64_t bytes, Site site);
void mbarrier_wait(const void* barrier, unsigned parity, Site site);

/// The `value` of the lane `source`, which must be in the mask.
std::uint64_t warp_shuffle(const char* what, std::uint32_t mask, std::uint64_t value, unsigned source, Site site);

/// One bit per lane of the mask.
std::uint32_t warp_ballot(const char* what, std::uint32_t mask, bool predicate, Site site);
/// The lanes whose value equals the caller's.
std::uint32_t warp_match(const char* what, std::uint32_t mask, std::uint64_t value, Site site);

enum class Reduction : std::uint8_t { add, minimum, maximum, minimum_signed, maximum_signed, bit_and, bit_or, bit_xor };
std::uint32_t warp_reduce(const char* what, std::uint32_t mask, std::uint32_t value, Reduction reduction, Site site);

/// Every lane's value: all[l] = what lane l gave. The whole warp takes part.
void warp_gather(const char* what, std::uint64_t value, std::uint64_t (&all)[32], Site site);

/// What part of a tile a lane holds.
enum class Fragments : std::uint8_t {
  runs,  ///< lane l the row-major elements [l * rows * columns / 32, (l + 1) * rows * columns / 32)
  mma    ///< as simt/engine/tensor_layout.h says; 16 x 8 x 16 only
};

/// c += a x b for a tile of m x n x k that the 32 lanes hold together.
struct MatrixMultiply {
  Fragments fragments;
  unsigned m, n, k;
  const float* a;
  const float* b;
  float* c;
};
void warp_matrix_multiply(const char* what, MatrixMultiply& part, Site site);

/// Ends the launch with an error. `message` gets file:line appended.
[[noreturn]] void fail_kernel(Site site, const char* message);

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

/// Bytes on their way from global to shared memory; zeros if `from` is null.
struct AsyncCopy {
  void* to = nullptr;
  const void* from = nullptr;
  int bytes = 16;  ///< or 4
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
