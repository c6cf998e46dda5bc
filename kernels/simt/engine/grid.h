// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/simt/site.h"

namespace gradring::simt {

/// Three extents or three coordinates: dim3 and uint3 for those who must not see CUDA's global names.
struct Extent3 {
  unsigned x = 1, y = 1, z = 1;

  constexpr std::size_t count() const { return std::size_t{x} * y * z; }
  /// The coordinates of the i-th element, x running fastest.
  constexpr Extent3 at(std::size_t i) const {
    return {static_cast<unsigned>(i % x), static_cast<unsigned>(i / x % y), static_cast<unsigned>(i / x / y)};
  }
};

/// One launch with the kernel's type erased: what Executor::run needs to know.
struct Grid {
  Extent3 blocks;
  Extent3 threads;  ///< of one block
  std::size_t shared_bytes = 0;
  Site site;  ///< of the launch

  const void* kernel = nullptr;  ///< the kernel with its arguments; outlives the run
  void (*run_thread)(const void* kernel) = nullptr;
  /// Runs blocks [begin, end) as plain loops; null for a kernel that may use barriers.
  void (*run_flat)(const void* kernel, const Grid& grid, std::size_t begin, std::size_t end) = nullptr;
};

}  // namespace gradring::simt
