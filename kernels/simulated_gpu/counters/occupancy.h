// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/simulated_gpu/cards/card.h"

namespace gradring::simulated_gpu {

/// What a block takes of a multiprocessor.
struct BlockNeeds {
  unsigned threads = 0;
  int registers = 0;             ///< of a thread; 0: not known, and no limit
  std::size_t shared_bytes = 0;  ///< static and dynamic, without CUDA's own
};

/// How many blocks a multiprocessor holds at once, by each of its limits.
struct Occupancy {
  int by_warps = 0;
  int by_registers = 0;
  int by_shared_memory = 0;
  int by_blocks = 0;

  /// 0 if such a block cannot be launched.
  int blocks() const { return std::min({by_warps, by_registers, by_shared_memory, by_blocks}); }
  /// "warps", "registers", "shared memory" or "blocks": the first that limits.
  const char* limiter() const;
};

/// Source    cuda_occupancy.h of CUDA 13.0, for compute capability 7.5 to 9.0.
Occupancy occupancy_of(const Card& card, const BlockNeeds& needs);

}  // namespace gradring::simulated_gpu
