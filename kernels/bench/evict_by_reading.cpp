// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "kernels/bench/machine.h"

namespace gradring::kernels::bench {

void evict(std::span<const std::byte>) {
  constexpr long kAtLeast = 64 * 1024 * 1024;  // where the system does not say how large its caches are
  const long last_level = std::max(::sysconf(_SC_LEVEL3_CACHE_SIZE), kAtLeast);
  std::vector<std::byte> other(2 * static_cast<std::size_t>(last_level));
  for (std::size_t i = 0; i < other.size(); i += 64) *static_cast<volatile std::byte*>(&other[i]) = std::byte{1};
}

}  // namespace gradring::kernels::bench
