// SPDX-License-Identifier: Apache-2.0
// Devices, versions, errors and functions of the driver.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/simulated_gpu/cards/card.h"
#include "kernels/simulated_gpu/cudart/runtime.h"
#include "kernels/simulated_gpu/units/tensor_map.h"

using namespace gradring::simulated_gpu;

namespace {

Device& existing(Call& call, int index) {
  if (!call.rt.has_device(index))
    throw Misuse{cudaErrorInvalidDevice, joined("device ", index, " of ", call.rt.devices.size(), " simulated ones")};
  return call.rt.device(index);
}

/// About what a context takes on such cards.
constexpr std::size_t kContextBytes = std::size_t{512} << 20;
constexpr int kKibibyte = 1024;
constexpr double kHertzPerKilohertz = 1000;

/// `number`: of the GPU in its machine.
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
  properties.maxThreadsPerMultiProcessor = card.threads_per_multiprocessor;
  properties.sharedMemPerMultiprocessor = static_cast<std::size_t>(card.shared_bytes_per_multiprocessor);
  properties.regsPerMultiprocessor = kRegisters;
  properties.sharedMemPerBlockOptin = static_cast<std::size_t>(card.shared_bytes_per_block);
  properties.maxBlocksPerMultiProcessor = card.blocks_per_multiprocessor;
  properties.reservedSharedMemPerBlock = card.reserved_shared_bytes;
  properties.memoryPoolsSupported = 1;
  return properties;
}

/// Nothing for an attribute that is not simulated.
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
    case cudaDevAttrReservedSharedMemoryPerBlock: return static_cast<int>(card.reserved_shared_bytes);
    case cudaDevAttrWarpSize: return kWarpThreads;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return kRegisters;
    case cudaDevAttrMultiProcessorCount: return card.multiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return card.threads_per_multiprocessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return card.blocks_per_multiprocessor;
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

CUresult reported(CUresult result, const std::string& why) {
  runtime().faults.add(FindingKind::misuse, joined("cuTensorMapEncodeTiled: ", why, " (error ", result, ")"));
  return result;
}

CUresult CUDAAPI encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                              const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                              const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                              CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                              CUtensorMapFloatOOBfill fill) {
  if (!this_thread().has_context)
    return reported(CUDA_ERROR_INVALID_CONTEXT, "this thread has no context: call cudaSetDevice first");
  if (runtime().device(this_thread().device).card().major < 9)
    return reported(CUDA_ERROR_NOT_SUPPORTED, "devices below compute capability 9.0 have no tensor maps");
  const TensorMapResult result = encode_tensor_map({.tensor_map = map,
                                                    .data_type = type,
                                                    .rank = rank,
                                                    .address = reinterpret_cast<std::uint64_t>(address),
                                                    .sizes = reinterpret_cast<const std::uint64_t*>(sizes),
                                                    .strides_bytes = reinterpret_cast<const std::uint64_t*>(strides),
                                                    .box = box,
                                                    .element_strides = element_strides,
                                                    .interleave = interleave,
                                                    .swizzle = swizzle,
                                                    .promotion = promotion,
                                                    .fill = fill});
  const auto code = static_cast<CUresult>(result.code);
  if (code != CUDA_SUCCESS) runtime().faults.add(FindingKind::misuse, result.reason);
  return code;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&](Call& call) {
    *count = static_cast<int>(call.rt.devices.size());
    if (*count == 0) throw Refusal{cudaErrorNoDevice};
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&](Call&) { *device = this_thread().device; });
}

/// Opens the device's context, as it does from CUDA 12 on.
cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", [&](Call& call) {
    existing(call, device).has_context = true;
    HostThread& thread = this_thread();
    thread.device = device;
    thread.has_selected = thread.has_context = true;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return call("cudaDriverGetVersion", [&](Call&) { *version = CUDART_VERSION; });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return call("cudaRuntimeGetVersion", [&](Call&) { *version = CUDART_VERSION; });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", [&](Call& call) {
    const auto known = attribute_of(existing(call, device).card(), attribute);
    if (!known)
      throw Misuse{cudaErrorInvalidValue, joined("attribute ", attribute, ", which the simulated GPU does not know")};
    *value = *known;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call("cudaGetDeviceProperties", [&](Call& call) {
    const Device& asked = existing(call, device);
    *properties = properties_of(asked.card(), asked.number());
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return call("cudaDeviceGetPCIBusId", [&](Call& call) {
    constexpr int kLength = 13;  // with the terminator
    const int number = existing(call, device).number();
    if (length < kLength) throw Misuse{cudaErrorInvalidValue, joined("room for ", length, " of 13 characters")};
    std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", static_cast<unsigned>(number));
  });
}

/// What pools hold counts as used.
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call("cudaMemGetInfo", [&](Call& call) {
    const Device& device = call.on_current();
    *total = device.card().memory_bytes;
    std::size_t used = kContextBytes;
    for (const auto& [number, pool] : call.rt.pools.all())
      if (pool.device == device.index()) used += pool.use->reserved;
    *free = *total - std::min(*total, used);
  });
}

cudaError_t cudaPeekAtLastError() {
  const HostThread& thread = this_thread();
  Runtime& rt = runtime();
  const cudaError_t failure = rt.has_device(thread.device) ? rt.device(thread.device).failure() : cudaSuccess;
  return failure != cudaSuccess ? failure : thread.last_error;
}

/// A failed device's error stays.
cudaError_t cudaGetLastError() {
  const cudaError_t last = cudaPeekAtLastError();
  this_thread().last_error = cudaSuccess;
  return last;
}

const char* cudaGetErrorName(cudaError_t error) { return error_name(error); }

/// For an error that a simulated GPU failed with, also why.
const char* cudaGetErrorString(cudaError_t error) { return described(error); }

// Functions of the driver, which a program gets from the runtime.
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return call("cudaGetDriverEntryPointByVersion", [&](Call&) {
    constexpr unsigned kFirstVersion = 12000;  // with tensor maps
    if (version > CUDART_VERSION)
      throw Misuse{cudaErrorInvalidValue, joined("version ", version, ", but the driver has ", CUDART_VERSION)};
    const bool is_known = std::string_view(name) == "cuTensorMapEncodeTiled";
    const bool is_there = is_known && version >= kFirstVersion;
    constexpr PFN_cuTensorMapEncodeTiled_v12000 kEncode = &encode_tiled;  // as it was in CUDA 12.0
    *function = is_there ? reinterpret_cast<void*>(kEncode) : nullptr;
    if (result)
      *result = is_there   ? cudaDriverEntryPointSuccess
                : is_known ? cudaDriverEntryPointVersionNotSufficent
                           : cudaDriverEntryPointSymbolNotFound;
  });
}
}
