// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/counters/occupancy.h"

namespace gradring::simulated_gpu {
namespace {

constexpr int kMostRegistersPerThread = 255;
constexpr int kRegisterUnit = 256;  ///< in which registers are given to a warp

template <class Number>
Number rounded_up(Number value, Number unit) {
  return (value + unit - 1) / unit * unit;
}

/// Each scheduler has a fourth of the registers, for whole warps.
int limit_of_registers(const Card& card, int registers, int warps) {
  if (registers == 0) return card.blocks_per_multiprocessor;
  if (registers > kMostRegistersPerThread) return 0;
  const int of_warp = rounded_up(registers * kWarpThreads, kRegisterUnit);
  if (of_warp * rounded_up(warps, kSchedulers) > kRegisters) return 0;
  return kRegisters / kSchedulers / of_warp * kSchedulers / warps;
}

int limit_of_shared_memory(const Card& card, std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(card.shared_bytes_per_block)) return 0;
  const std::size_t of_block = rounded_up(bytes + card.reserved_shared_bytes, card.shared_allocation_unit);
  if (of_block == 0) return card.blocks_per_multiprocessor;
  return static_cast<int>(static_cast<std::size_t>(card.shared_bytes_per_multiprocessor) / of_block);
}

}  // namespace

const char* Occupancy::limiter() const {
  const int least = blocks();
  return by_warps == least           ? "warps"
         : by_registers == least     ? "registers"
         : by_shared_memory == least ? "shared memory"
                                     : "blocks";
}

Occupancy occupancy_of(const Card& card, const BlockNeeds& needs) {
  const int warps = (static_cast<int>(needs.threads) + kWarpThreads - 1) / kWarpThreads;
  const bool is_allowed = warps > 0 && needs.threads <= kMostThreadsPerBlock;
  return {.by_warps = is_allowed ? card.threads_per_multiprocessor / kWarpThreads / warps : 0,
          .by_registers = is_allowed ? limit_of_registers(card, needs.registers, warps) : 0,
          .by_shared_memory = limit_of_shared_memory(card, needs.shared_bytes),
          .by_blocks = card.blocks_per_multiprocessor};
}

}  // namespace gradring::simulated_gpu
