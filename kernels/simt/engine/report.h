// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simt/engine/fiber.h"

namespace gradring::simt::detail {

/// "thread (3,0,0) in __syncthreads at file.cu:12". A value, not a std::string: the stacks that messages are written on
/// are abandoned, and what they own would leak.
struct Description {
  char text[240];
};
Description describe(const Fiber& fiber);

}  // namespace gradring::simt::detail
