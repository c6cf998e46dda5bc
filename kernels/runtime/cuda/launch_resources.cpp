// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/launch_resources.h"

#include "kernels/runtime/cuda/cuda_error.h"

namespace gradring::kernels {
namespace {

int current_device_has(cudaDeviceAttr attribute) {
  int device = 0;
  cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  int value = 0;
  cuda_check(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
  return value;
}

}  // namespace

LaunchReport::Resources launch_resources(const void* kernel, std::size_t threads, std::size_t dynamic_shared_bytes) {
  cudaFuncAttributes attributes{};
  cuda_check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  int blocks = 0;
  cuda_check(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, static_cast<int>(threads), dynamic_shared_bytes),
      "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  const int warp = current_device_has(cudaDevAttrWarpSize);
  const int warps_of_block = (static_cast<int>(threads) + warp - 1) / warp;
  return {.registers = attributes.numRegs,
          .local_bytes = attributes.localSizeBytes,
          .static_shared_bytes = attributes.sharedSizeBytes,
          .resident_warps = blocks * warps_of_block,
          .most_warps = current_device_has(cudaDevAttrMaxThreadsPerMultiProcessor) / warp};
}

}  // namespace gradring::kernels
