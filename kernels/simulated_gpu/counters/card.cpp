// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/counters/card.h"

#include <algorithm>

namespace gradring::simulated_gpu {
namespace {

constexpr std::size_t kGibibyte = std::size_t{1} << 30;
constexpr int kKibibyte = 1024;
constexpr int kMebibyte = 1024 * 1024;

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

const std::vector<Card>& cards() {
  static const std::vector<Card> table = {{.name = "a100",
                                           .full_name = "NVIDIA A100-SXM4-80GB",
                                           .major = 8,
                                           .minor = 0,
                                           .multiprocessors = 108,
                                           .memory_bytes = 80 * kGibibyte,
                                           .l2_bytes = 40 * kMebibyte,
                                           .shared_bytes_per_multiprocessor = 164 * kKibibyte,
                                           .shared_bytes_per_block = 163 * kKibibyte,
                                           .bus_bits = 5120,
                                           .clock_hertz = 1.41e9,
                                           .bytes_per_second = 2.039e12,
                                           .host_bytes_per_second = 32e9,
                                           .tensor_flops_per_cycle = 2048},
                                          {.name = "h100",
                                           .full_name = "NVIDIA H100 80GB HBM3",
                                           .major = 9,
                                           .minor = 0,
                                           .multiprocessors = 132,
                                           .memory_bytes = 80 * kGibibyte,
                                           .l2_bytes = 50 * kMebibyte,
                                           .shared_bytes_per_multiprocessor = 228 * kKibibyte,
                                           .shared_bytes_per_block = 227 * kKibibyte,
                                           .bus_bits = 5120,
                                           .clock_hertz = 1.98e9,
                                           .bytes_per_second = 3.35e12,
                                           .host_bytes_per_second = 64e9,
                                           .tensor_flops_per_cycle = 4096}};
  return table;
}

const Card* find_card(std::string_view name) {
  const auto found = std::ranges::find(cards(), name, &Card::name);
  return found == cards().end() ? nullptr : &*found;
}

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
