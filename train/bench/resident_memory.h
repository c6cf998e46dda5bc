// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace gradring::train::bench {

/// How much memory this process holds, program and libraries included.
struct ResidentMemory {
  std::size_t now_bytes = 0;
  std::size_t most_bytes = 0;  ///< ever
};

/// Errors    EnvironmentError where /proc/self/status does not say it.
ResidentMemory resident_memory();

}  // namespace gradring::train::bench
