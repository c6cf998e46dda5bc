// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernels/bench/machine.h"

namespace gradring::kernels::bench {

void evict(std::span<const std::byte> bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes.size(); i += kLine) _mm_clflush(bytes.data() + i);
  if (!bytes.empty()) _mm_clflush(&bytes.back());
  _mm_mfence();
}

}  // namespace gradring::kernels::bench
