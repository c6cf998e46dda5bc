// SPDX-License-Identifier: Apache-2.0
// What CUDA's barriers and warp intrinsics (kernels/simt/cpu) call. Each parks the calling emulated thread until its
// partners have come; `what` is the intrinsic's name, for messages.
#pragma once

#include <cstdint>

#include "kernels/simt/error.h"

namespace gradring::simt::detail {

/// Waits for the whole block; returns for how many threads `predicate` held.
unsigned block_barrier(const char* what, bool predicate, Site site);
void warp_barrier(const char* what, std::uint32_t mask, Site site);

// Barriers that the program places in shared memory; see engine/mbarriers.h.
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
  mma    ///< as simt/tensor_layout.h says; 16 x 8 x 16 only
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

}  // namespace gradring::simt::detail
