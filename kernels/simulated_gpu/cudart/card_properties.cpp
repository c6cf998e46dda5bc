// SPDX-License-Identifier: Apache-2.0
// Properties and attributes of a card.
#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "kernels/simulated_gpu/cudart/device.h"

namespace gradring::simulated_gpu {
namespace {

constexpr int kKibibyte = 1024;
constexpr double kHertzPerKilohertz = 1000;

/// Single to double precision: of cards for data centers 2, of others 32 (64 from 8.6 on).
int precision_ratio(const Card& card) {
  const bool is_for_data_centers = card.minor == 0 && card.major >= 8;
  return is_for_data_centers ? 2 : card.major >= 8 ? 64 : 32;
}

}  // namespace

cudaDeviceProp properties_of(const Device& device) {
  const Card& card = device.card();
  cudaDeviceProp made{};
  const std::string name = "simulated " + card.full_name;
  std::ranges::copy(std::string_view(name).substr(0, sizeof made.name - 1), made.name);
  const std::string identifier = "gradring " + std::to_string(device.number());
  std::ranges::copy(std::string_view(identifier).substr(0, sizeof made.uuid.bytes), made.uuid.bytes);
  made.totalGlobalMem = card.memory_bytes;
  made.sharedMemPerBlock = kSharedWithoutAsking;
  made.regsPerBlock = kRegisters;
  made.warpSize = kWarpThreads;
  made.memPitch = std::numeric_limits<int>::max();
  made.maxThreadsPerBlock = kMostThreadsPerBlock;
  std::ranges::copy(kMostBlockExtents, made.maxThreadsDim);
  std::ranges::copy(kMostGridExtents, made.maxGridSize);
  made.totalConstMem = 64 * kKibibyte;
  made.major = card.major;
  made.minor = card.minor;
  made.textureAlignment = 512;
  made.texturePitchAlignment = 32;
  made.surfaceAlignment = 512;
  made.multiProcessorCount = card.multiprocessors;
  made.canMapHostMemory = 1;
  made.concurrentKernels = 1;
  made.ECCEnabled = 1;
  made.pciBusID = device.number();
  made.asyncEngineCount = 3;
  made.unifiedAddressing = 1;
  made.memoryBusWidth = card.bus_bits;
  made.l2CacheSize = card.l2_bytes;
  made.maxThreadsPerMultiProcessor = card.threads_per_multiprocessor;
  made.streamPrioritiesSupported = 1;
  made.globalL1CacheSupported = 1;
  made.localL1CacheSupported = 1;
  made.sharedMemPerMultiprocessor = static_cast<std::size_t>(card.shared_bytes_per_multiprocessor);
  made.regsPerMultiprocessor = kRegisters;
  made.managedMemory = 1;
  made.concurrentManagedAccess = 1;
  made.computePreemptionSupported = 1;
  made.canUseHostPointerForRegisteredMem = 1;
  made.cooperativeLaunch = 1;
  made.sharedMemPerBlockOptin = static_cast<std::size_t>(card.shared_bytes_per_block);
  made.maxBlocksPerMultiProcessor = card.blocks_per_multiprocessor;
  made.reservedSharedMemPerBlock = card.reserved_shared_bytes;
  made.hostRegisterSupported = 1;
  made.memoryPoolsSupported = 1;
  made.clusterLaunch = card.major >= 9 ? 1 : 0;
  made.unifiedFunctionPointers = 0;
  return made;
}

std::optional<int> attribute_of(const Device& device, cudaDeviceAttr attribute) {
  const cudaDeviceProp all = properties_of(device);
  const auto number = [](auto value) { return static_cast<int>(value); };
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return all.maxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX: return all.maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimY: return all.maxThreadsDim[1];
    case cudaDevAttrMaxBlockDimZ: return all.maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX: return all.maxGridSize[0];
    case cudaDevAttrMaxGridDimY: return all.maxGridSize[1];
    case cudaDevAttrMaxGridDimZ: return all.maxGridSize[2];
    case cudaDevAttrMaxSharedMemoryPerBlock: return number(all.sharedMemPerBlock);
    case cudaDevAttrTotalConstantMemory: return number(all.totalConstMem);
    case cudaDevAttrWarpSize: return all.warpSize;
    case cudaDevAttrMaxPitch: return number(all.memPitch);
    case cudaDevAttrMaxRegistersPerBlock: return all.regsPerBlock;
    case cudaDevAttrClockRate: return number(device.card().clock_hertz / kHertzPerKilohertz);
    // Of a double data rate: bytes of a cycle are those of the bus, twice.
    case cudaDevAttrMemoryClockRate:
      return number(device.card().bytes_per_second / (2.0 * all.memoryBusWidth / 8) / kHertzPerKilohertz);
    case cudaDevAttrTextureAlignment: return number(all.textureAlignment);
    case cudaDevAttrTexturePitchAlignment: return number(all.texturePitchAlignment);
    case cudaDevAttrSurfaceAlignment: return number(all.surfaceAlignment);
    case cudaDevAttrMultiProcessorCount: return all.multiProcessorCount;
    case cudaDevAttrPciBusId: return all.pciBusID;
    case cudaDevAttrGlobalMemoryBusWidth: return all.memoryBusWidth;
    case cudaDevAttrL2CacheSize: return all.l2CacheSize;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return all.maxThreadsPerMultiProcessor;
    case cudaDevAttrAsyncEngineCount: return all.asyncEngineCount;
    case cudaDevAttrComputeCapabilityMajor: return all.major;
    case cudaDevAttrComputeCapabilityMinor: return all.minor;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return number(all.sharedMemPerMultiprocessor);
    case cudaDevAttrMaxRegistersPerMultiprocessor: return all.regsPerMultiprocessor;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio: return precision_ratio(device.card());
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return number(all.sharedMemPerBlockOptin);
    case cudaDevAttrMaxBlocksPerMultiprocessor: return all.maxBlocksPerMultiProcessor;
    case cudaDevAttrReservedSharedMemoryPerBlock: return number(all.reservedSharedMemPerBlock);
    case cudaDevAttrClusterLaunch: return all.clusterLaunch;
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrMemoryPoolsSupported: return 1;
    default: break;
  }
  // What is documented and not simulated: extents of textures, and abilities that nothing here has.
  if (attribute > 0 && attribute < cudaDevAttrMax) return 0;
  return std::nullopt;
}

}  // namespace gradring::simulated_gpu
