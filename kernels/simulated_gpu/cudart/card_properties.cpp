// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/card_properties.h"

#include <algorithm>
#include <string>

namespace gradring::simulated_gpu {
namespace {

constexpr int kKibibyte = 1024;
constexpr double kHertzPerKilohertz = 1000;

}  // namespace

cudaDeviceProp properties_of(const Card& card, int number) {
  cudaDeviceProp properties{};
  const std::string name = std::string("simulated ") + card.full_name;
  std::ranges::copy(name, properties.name);
  properties.totalGlobalMem = card.memory_bytes;
  properties.sharedMemPerBlock = kSharedWithoutAsking;
  properties.regsPerBlock = kRegisters;
  properties.warpSize = kWarpThreads;
  properties.maxThreadsPerBlock = kMostThreadsPerBlock;
  std::ranges::copy(kMostBlockExtents, properties.maxThreadsDim);
  std::ranges::copy(kMostGridExtents, properties.maxGridSize);
  properties.totalConstMem = 64 * kKibibyte;
  properties.major = card.major;
  properties.minor = card.minor;
  properties.multiProcessorCount = card.multiprocessors;
  properties.canMapHostMemory = 1;
  properties.concurrentKernels = 1;
  properties.ECCEnabled = 1;
  properties.pciBusID = number;
  properties.asyncEngineCount = 3;
  properties.unifiedAddressing = 1;
  properties.memoryBusWidth = card.bus_bits;
  properties.l2CacheSize = card.l2_bytes;
  properties.maxThreadsPerMultiProcessor = kMostThreadsPerMultiprocessor;
  properties.sharedMemPerMultiprocessor = static_cast<std::size_t>(card.shared_bytes_per_multiprocessor);
  properties.regsPerMultiprocessor = kRegisters;
  properties.sharedMemPerBlockOptin = static_cast<std::size_t>(card.shared_bytes_per_block);
  properties.maxBlocksPerMultiProcessor = kMostBlocksPerMultiprocessor;
  properties.reservedSharedMemPerBlock = kReservedSharedBytes;
  properties.memoryPoolsSupported = 1;
  return properties;
}

std::optional<int> attribute_of(const Card& card, cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return static_cast<int>(kMostThreadsPerBlock);
    case cudaDevAttrMaxBlockDimX: return static_cast<int>(kMostBlockExtents[0]);
    case cudaDevAttrMaxBlockDimY: return static_cast<int>(kMostBlockExtents[1]);
    case cudaDevAttrMaxBlockDimZ: return static_cast<int>(kMostBlockExtents[2]);
    case cudaDevAttrMaxGridDimX: return static_cast<int>(kMostGridExtents[0]);
    case cudaDevAttrMaxGridDimY: return static_cast<int>(kMostGridExtents[1]);
    case cudaDevAttrMaxGridDimZ: return static_cast<int>(kMostGridExtents[2]);
    case cudaDevAttrMaxSharedMemoryPerBlock: return static_cast<int>(kSharedWithoutAsking);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return card.shared_bytes_per_block;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return card.shared_bytes_per_multiprocessor;
    case cudaDevAttrReservedSharedMemoryPerBlock: return static_cast<int>(kReservedSharedBytes);
    case cudaDevAttrWarpSize: return kWarpThreads;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return kRegisters;
    case cudaDevAttrMultiProcessorCount: return card.multiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return kMostThreadsPerMultiprocessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return kMostBlocksPerMultiprocessor;
    case cudaDevAttrComputeCapabilityMajor: return card.major;
    case cudaDevAttrComputeCapabilityMinor: return card.minor;
    case cudaDevAttrL2CacheSize: return card.l2_bytes;
    case cudaDevAttrGlobalMemoryBusWidth: return card.bus_bits;
    case cudaDevAttrClockRate: return static_cast<int>(card.clock_hertz / kHertzPerKilohertz);
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrMemoryPoolsSupported: return 1;
    default: return std::nullopt;
  }
}

}  // namespace gradring::simulated_gpu
