// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/engine/context.h"
#include "kernels/simt/engine/grid.h"
#include "kernels/simt/engine/sanitizer.h"

namespace gradring::simt::detail {

/// One emulated thread while it has a stack of its own, or the OS thread that runs the block.
struct Fiber {
  Context context;
  Tracked tracked;
  std::size_t stack_index = 0;

  unsigned linear = 0;             // number of the thread in its block, x running fastest
  Extent3 thread{0, 0, 0};         // threadIdx
  const char* waits_in = nullptr;  // the operation that parked it, for messages
  Site site;                       // and where that stands

  unsigned lane() const { return linear % 32; }
  unsigned warp() const { return linear / 32; }
};

}  // namespace gradring::simt::detail
