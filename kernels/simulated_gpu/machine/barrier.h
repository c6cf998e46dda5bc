// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/simulated_gpu/machine/program.h"

namespace gradring::simulated_gpu {

/// Details of bar.sync and bar.red. Operation::a is the row of the barrier's number, b that of its number of threads
/// (0: all), c the predicate and d the destination of a reduction.
struct BarrierDetails {
  enum class Reduction : std::uint8_t { none, all, any, count };
  Reduction reduction = Reduction::none;
  Mask flip = 0;  ///< all lanes if the predicate is negated
  bool is_aligned =
      true;  ///< all threads of a warp execute the same instruction; barrier.sync without .aligned: not so
};

}  // namespace gradring::simulated_gpu
