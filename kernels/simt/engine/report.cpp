// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/engine/report.h"

#include <cstdio>

namespace gradring::simt::detail {

Description describe(const Fiber& fiber) {
  Description description;
  std::snprintf(description.text, sizeof description.text, "thread (%u,%u,%u) in %s at %s:%d", fiber.thread.x,
                fiber.thread.y, fiber.thread.z, fiber.waits_in ? fiber.waits_in : "the kernel", fiber.site.file,
                fiber.site.line);
  return description;
}

}  // namespace gradring::simt::detail
