// SPDX-License-Identifier: Apache-2.0
// What kernels/lib/mbarrier.h means on the CPU. The engine counts; the word in shared memory is only touched, so that the
// sanitizers see one that is out of bounds, or used before the block knows that it is initialised.
#pragma once

#include <cstdint>

#include "kernels/simt/engine/cooperation.h"

namespace gradring::simt::detail {

inline void init_mbarrier(std::uint64_t& word, unsigned arrivals, Site site) {
  if (reinterpret_cast<std::uintptr_t>(&word) % sizeof word != 0)
    fail_kernel(site, "the address of an mbarrier is not a multiple of 8 bytes");
  static_cast<volatile std::uint64_t&>(word) = arrivals;
  mbarrier_init(&word, arrivals, site);
}

inline const void* touched(const std::uint64_t& word) {
  [[maybe_unused]] const std::uint64_t seen = static_cast<const volatile std::uint64_t&>(word);
  return &word;
}

inline void arrive_at_mbarrier(const char* what, const std::uint64_t& word, std::int64_t expected_bytes, Site site) {
  mbarrier_arrive(what, touched(word), expected_bytes, site);
}

inline void wait_for_mbarrier(const std::uint64_t& word, unsigned parity, Site site) {
  mbarrier_wait(touched(word), parity, site);
}

}  // namespace gradring::simt::detail
