// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/operations/span.h"

#include <algorithm>

namespace gradring::simulated_gpu {
inline namespace GRADRING_KERNEL_COPY {
namespace {

// Signed: vectors of unsigned numbers have no minimum before x86-64-v4. No valid address has the highest bit: the check
// of bounds rejects it, whether it comes first or last.
Span find_span(const Addresses& addresses, unsigned bytes) {
  const std::uint64_t begin = addresses.lane[0];
  std::uint64_t bits = 0;
  std::uint64_t unequal = 0;
  std::uint64_t unconnected = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    bits |= addresses.lane[lane];
    unequal |= addresses.lane[lane] ^ begin;
    unconnected |= addresses.lane[lane] ^ (begin + std::uint64_t{lane} * bytes);
  }
  if (unequal == 0) return {begin, begin, bits, false};
  if (unconnected == 0) return {begin, addresses.lane[kWarpSize - 1], bits, true};
  auto first = static_cast<std::int64_t>(addresses.lane[0]);
  std::int64_t last = first;
  for (const std::uint64_t address : addresses.lane) {
    first = std::min(first, static_cast<std::int64_t>(address));
    last = std::max(last, static_cast<std::int64_t>(address));
  }
  return {static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(last), bits, false};
}

}  // namespace

SpanOf span_loop() { return find_span; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simulated_gpu
