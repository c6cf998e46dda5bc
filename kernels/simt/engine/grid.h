// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simt/engine/error.h"

namespace gradring::simt {

/// Three extents or three coordinates: dim3 and uint3 for code that must not see CUDA's global names.
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

/// The order in which the threads of a block run. A correct kernel gives the same result in each.
enum class ThreadOrder : std::uint8_t { forward, reverse, random };

struct ExecutorOptions {
  unsigned workers = 1;  ///< OS threads that share the blocks of a grid, the caller included
  ThreadOrder order = ThreadOrder::forward;
  std::uint64_t seed = 1;      ///< of ThreadOrder::random
  bool poison_shared = false;  ///< fill shared memory with 0xff (NaN) before each block
};

}  // namespace gradring::simt
