// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace gradring::simulated_gpu {

/// A GPU by its data sheet.
///
/// Source    limits: CUDA Programming Guide 13.0, "Technical specifications per compute capability"; processors, memory, cache:
///           "NVIDIA A100 Tensor Core GPU Architecture" (2020) and "NVIDIA H100 Tensor Core GPU Architecture" (2022), SXM with
///           80 GB. A real card reports about 1 % less memory, which it keeps for itself.
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
  double clock_hertz = 0;       ///< boost
  double bytes_per_second = 0;  ///< of its memory

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

const std::vector<Card>& cards();
/// Null for an unknown name.
const Card* find_card(std::string_view name);

/// `number`: of the GPU in its machine.
cudaDeviceProp properties_of(const Card& card, int number);
/// Nothing for an attribute that is not simulated.
std::optional<int> attribute_of(const Card& card, cudaDeviceAttr attribute);

}  // namespace gradring::simulated_gpu
