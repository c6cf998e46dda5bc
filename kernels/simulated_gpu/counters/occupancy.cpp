// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/counters/occupancy.h"

#include <algorithm>

namespace gradring::simulated_gpu {
namespace {

constexpr int kMostRegistersPerThread = 255;
constexpr int kRegisterUnit = 256;        ///< in which registers are given to a warp
constexpr std::size_t kSharedUnit = 128;  ///< in which shared memory is given to a block

template <class Number>
Number rounded_up(Number value, Number unit) {
  return (value + unit - 1) / unit * unit;
}

/// Each scheduler has a fourth of the registers, for whole warps.
int limit_of_registers(int registers, int warps) {
  if (registers == 0) return kMostBlocksPerMultiprocessor;
  if (registers > kMostRegistersPerThread) return 0;
  const int of_warp = rounded_up(registers * kWarpThreads, kRegisterUnit);
  if (of_warp * rounded_up(warps, kSchedulers) > kRegisters) return 0;
  return kRegisters / kSchedulers / of_warp * kSchedulers / warps;
}

}  // namespace

int Occupancy::blocks() const { return std::min({by_warps, by_registers, by_shared_memory, by_blocks}); }

const char* Occupancy::limiter() const {
  const int least = blocks();
  return by_warps == least           ? "warps"
         : by_registers == least     ? "registers"
         : by_shared_memory == least ? "shared memory"
                                     : "blocks";
}

Occupancy occupancy_of(const Card& card, const BlockNeeds& needs) {
  const int warps = (static_cast<int>(needs.threads) + kWarpThreads - 1) / kWarpThreads;
  const auto most_shared = static_cast<std::size_t>(card.shared_bytes_per_block);
  const std::size_t shared = rounded_up(needs.shared_bytes + kReservedSharedBytes, kSharedUnit);
  const bool is_allowed = warps > 0 && needs.threads <= kMostThreadsPerBlock;
  return {.by_warps = is_allowed ? kMostThreadsPerMultiprocessor / kWarpThreads / warps : 0,
          .by_registers = is_allowed ? limit_of_registers(needs.registers, warps) : 0,
          .by_shared_memory =
              needs.shared_bytes > most_shared
                  ? 0
                  : static_cast<int>(static_cast<std::size_t>(card.shared_bytes_per_multiprocessor) / shared),
          .by_blocks = kMostBlocksPerMultiprocessor};
}

}  // namespace gradring::simulated_gpu
