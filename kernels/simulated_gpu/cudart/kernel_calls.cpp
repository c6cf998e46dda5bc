// SPDX-License-Identifier: Apache-2.0
// Kernels: attributes, occupancy and launches.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/simulated_gpu/cudart/kernel_launch.h"

using namespace gradring::simulated_gpu;

namespace {

/// A launch on a stream of the current device.
cudaError_t launched(const char* name, const cudaLaunchConfig_t& config, const void* kernel, void** arguments) {
  return call(name, [&](Call& call) {
    Stream& stream = call.stream(config.stream);
    const Device& device = call.on(stream.device);
    if (stream.device != this_thread().device)
      throw Misuse{cudaErrorInvalidResourceHandle,
                   joined("a stream of ", device.name(), " while cuda:", this_thread().device, " is current")};
    call.rt.enqueue(stream, launch_work(call.rt, device, config, kernel, arguments));
  });
}

cudaLaunchConfig_t configured(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return config;
}

}  // namespace

extern "C" {

/// Of machine code that the program has for the device: registers and stack. Without it, they are 0 and PTX's local
/// memory.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  return call("cudaFuncGetAttributes", [&](Call& call) {
    const Device& device = call.on_current();
    const LoadedKernel& code = loaded(kernel, device);
    *attributes = {};
    attributes->sharedSizeBytes = code.kernel.static_shared_bytes;
    attributes->localSizeBytes = code.code ? code.code->stack_bytes : code.kernel.local_bytes;
    attributes->numRegs = registers_of(code);
    attributes->maxThreadsPerBlock = static_cast<int>(most_threads(code.kernel));
    attributes->ptxVersion = code.compute_capability;
    attributes->binaryVersion = device.card().compute_capability();
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(allowed_shared(call.rt, kernel, code, device.index()));
    attributes->preferredShmemCarveout = -1;
  });
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return call("cudaFuncSetAttribute", [&](Call& call) {
    const Device& device = call.on_current();
    const LoadedKernel& code = loaded(kernel, device);
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout ||
        attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
      return;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
      throw Misuse{cudaErrorNotSupported, joined("attribute ", attribute, ", which is not simulated")};
    const auto most = device.card().shared_bytes_per_block - static_cast<int>(code.kernel.static_shared_bytes);
    if (value < 0 || value > most)
      throw Misuse{cudaErrorInvalidValue, joined(value, " bytes of dynamic shared memory for ",
                                                 kernel_table().name_of(kernel), ", expected 0 to ", most)};
    call.rt.allowed_shared[{kernel, device.index()}] = value;
  });
}

cudaError_t cudaFuncGetName(const char** name, const void* kernel) {
  return call("cudaFuncGetName", [&](Call& call) { *name = loaded(kernel, call.on_current()).kernel.name.data(); });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel, int threads,
                                                                   std::size_t dynamic_shared, unsigned) {
  return call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&](Call& call) {
    const Device& device = call.on_current();
    const LoadedKernel& code = loaded(kernel, device);
    if (threads <= 0) throw Misuse{cudaErrorInvalidValue, joined(threads, " threads")};
    const auto count = static_cast<unsigned>(threads);
    *blocks = count > most_threads(code.kernel) ? 0 : occupancy_of(device, code, count, dynamic_shared).blocks();
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads,
                                                          std::size_t dynamic_shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads, dynamic_shared,
                                                                cudaOccupancyDefault);
}

/// The most with which so many blocks are resident, in units of what a multiprocessor gives.
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* kernel, int blocks, int threads) {
  return call("cudaOccupancyAvailableDynamicSMemPerBlock", [&](Call& call) {
    const Device& device = call.on_current();
    const Card& card = device.card();
    const LoadedKernel& code = loaded(kernel, device);
    if (blocks <= 0 || threads <= 0)
      throw Misuse{cudaErrorInvalidValue, joined(blocks, " blocks of ", threads, " threads")};
    if (occupancy_of(device, code, static_cast<unsigned>(threads), 0).blocks() < blocks)
      throw Misuse{cudaErrorInvalidValue, joined(blocks, " blocks, which a multiprocessor does not hold")};
    const std::size_t share = static_cast<std::size_t>(card.shared_bytes_per_multiprocessor / blocks) /
                              card.shared_allocation_unit * card.shared_allocation_unit;
    const std::size_t taken = card.reserved_shared_bytes + code.kernel.static_shared_bytes;
    const auto most = static_cast<std::size_t>(card.shared_bytes_per_block) - code.kernel.static_shared_bytes;
    *bytes = std::min(share - std::min(share, taken), most);
  });
}

/// Of the whole card, for clusters that may be anywhere on it.
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel, const cudaLaunchConfig_t* config) {
  return call("cudaOccupancyMaxActiveClusters", [&](Call& call) {
    const Device& device = call.on_current();
    const LoadedKernel& code = loaded(kernel, device);
    unsigned blocks = 1;
    for (unsigned i = 0; i < config->numAttrs; ++i)
      if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
        blocks =
            config->attrs[i].val.clusterDim.x * config->attrs[i].val.clusterDim.y * config->attrs[i].val.clusterDim.z;
    const unsigned threads = config->blockDim.x * config->blockDim.y * config->blockDim.z;
    const int resident = occupancy_of(device, code, threads, config->dynamicSmemBytes).blocks();
    *clusters = resident * device.card().multiprocessors / static_cast<int>(std::max(blocks, 1u));
  });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments) {
  return launched("cudaLaunchKernelExC", *config, kernel, arguments);
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                             cudaStream_t stream) {
  return launched("cudaLaunchKernel", configured(grid, block, shared_bytes, stream), kernel, arguments);
}

cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                        std::size_t shared_bytes, cudaStream_t stream) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config = configured(grid, block, shared_bytes, stream);
  config.attrs = &attribute;
  config.numAttrs = 1;
  return launched("cudaLaunchCooperativeKernel", config, kernel, arguments);
}
}
