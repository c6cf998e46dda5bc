// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/lib/partial_sums.h"

namespace gradring::tests {

/// Adds up partial sums that a variant has left, as its caller does.
inline void add_up(const kernels::PartialSums& sums) {
  for (const kernels::PartialSum& sum : sums)
    for (std::int64_t i = 0; i < sum.elements; ++i) {
      sum.to[i] = 0;
      for (std::int64_t slice = 0; slice < sum.count; ++slice) sum.to[i] += sum.slices[slice * sum.stride + i];
    }
}

}  // namespace gradring::tests
