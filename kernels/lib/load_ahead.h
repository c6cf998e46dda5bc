// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/lib/element.h"

namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// use(i, load(i)) for i = first, first + step and so on below end, in this order, with the loads of kAtOnce on their way
/// together: for loops whose time is the latency of memory. Left alone, nvcc loads and uses one after the other where
/// the number of turns is not known, or where a store stands between two loads.
template <int kAtOnce, class Index, class Load, class Use>
__device__ inline void load_ahead(Index first, Index end, Index step, Load load, Use use) {
  for (; first < end; first += static_cast<Index>(kAtOnce) * step) {
    decltype(load(first)) values[kAtOnce];
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kAtOnce; ++i) {
      if (const Index at = first + static_cast<Index>(i) * step; at < end)
        values[i] = load(at);
      else if constexpr (kCopyKind == DeviceKind::cpu)
        values[i] = {};  // for compilers that warn; nvcc would load fewer at once
    }
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kAtOnce; ++i)
      if (const Index at = first + static_cast<Index>(i) * step; at < end) use(at, values[i]);
  }
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
