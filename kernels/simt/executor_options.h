// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gradring::simt {

/// In which order the threads of a block get their turns. A correct kernel gives the same result in each.
enum class ThreadOrder : std::uint8_t { forward, reverse, random };

struct ExecutorOptions {
  unsigned workers = 1;  ///< OS threads that share out the blocks of a grid, the caller included
  ThreadOrder order = ThreadOrder::forward;
  std::uint64_t seed = 1;      ///< of ThreadOrder::random
  bool poison_shared = false;  ///< fill shared memory with 0xff (NaN) before each block
};

}  // namespace gradring::simt
