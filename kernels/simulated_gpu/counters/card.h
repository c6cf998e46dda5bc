// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace gradring::simulated_gpu {

/// A GPU by its data sheet.
///
/// Source    limits: CUDA Programming Guide 13.0, "Technical specifications per compute capability"; processors,
///           memory, cache: "NVIDIA A100 Tensor Core GPU Architecture" (2020) and "NVIDIA H100 Tensor Core GPU
///           Architecture" (2022), SXM with 80 GB. A real card reports about 1 % less memory, which it keeps for
///           itself. Of the clocks, the boost clock outside tensor cores: with 1.98 GHz an H100 has the paper's FP32
///           peak, with 1.83 GHz that of its tensor cores.
struct Card {
  std::string_view name;  ///< "h100"
  const char* full_name;  ///< as the driver names the real one
  int major = 0;
  int minor = 0;
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  int l2_bytes = 0;
  int shared_bytes_per_multiprocessor = 0;
  int shared_bytes_per_block = 0;  ///< that a kernel may have if it asks for more than 48 KB
  int bus_bits = 0;
  double clock_hertz = 0;             ///< the highest: a bound holds at any other
  double bytes_per_second = 0;        ///< of its memory
  double host_bytes_per_second = 0;   ///< of PCI Express with 16 lanes, in one direction
  double tensor_flops_per_cycle = 0;  ///< of a multiprocessor, with factors of 16 bits and without sparsity

  int compute_capability() const { return 10 * major + minor; }
};

/// Limits that all cards here have in common.
inline constexpr unsigned kMostThreadsPerBlock = 1024;
inline constexpr unsigned kMostBlockExtents[3] = {1024, 1024, 64};
inline constexpr unsigned kMostGridExtents[3] = {0x7fffffff, 65535, 65535};
inline constexpr int kMostThreadsPerMultiprocessor = 2048;
inline constexpr int kMostBlocksPerMultiprocessor = 32;
inline constexpr int kRegisters = 65536;                        ///< of a multiprocessor, and of a block
inline constexpr std::size_t kSharedWithoutAsking = 48 * 1024;  ///< of a block, static and dynamic together
inline constexpr std::size_t kReservedSharedBytes = 1024;       ///< of each block, by CUDA
inline constexpr int kWarpThreads = 32;
inline constexpr int kSchedulers = 4;  ///< of a multiprocessor; each issues an instruction of a warp in a cycle

const std::vector<Card>& cards();
/// Null for an unknown name.
const Card* find_card(std::string_view name);

/// What a block takes of a multiprocessor.
struct BlockNeeds {
  unsigned threads = 0;
  int registers = 0;             ///< of a thread; 0: not known, and no limit
  std::size_t shared_bytes = 0;  ///< static and dynamic, without CUDA's own
};

/// How many blocks a multiprocessor holds at once, by each of its limits.
struct Occupancy {
  int by_warps = 0;
  int by_registers = 0;
  int by_shared_memory = 0;
  int by_blocks = 0;

  /// 0 if such a block cannot be launched.
  int blocks() const { return std::min({by_warps, by_registers, by_shared_memory, by_blocks}); }
  /// "warps", "registers", "shared memory" or "blocks": the first that limits.
  const char* limiter() const;
};

/// Source    cuda_occupancy.h of CUDA 13.0, for compute capability 8.0 and 9.0.
Occupancy occupancy_of(const Card& card, const BlockNeeds& needs);

}  // namespace gradring::simulated_gpu
