// SPDX-License-Identifier: Apache-2.0
// What the host code that nvcc writes calls: before main, and for kernel<<<...>>>(...).
#include <cuda_runtime_api.h>

#include "kernels/simulated_gpu/cudart/kernel_table.h"
#include "kernels/simulated_gpu/cudart/runtime.h"

using namespace gradring::simulated_gpu;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) { return kernel_table().add_binary(wrapper); }
void __cudaRegisterFatBinaryEnd(void**) {}
/// At the end of the process.
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** binary, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  kernel_table().add_kernel(binary, host, name);
}

/// kernel<<<...>>> is not simulated, as it is for the default stream; our code launches by cudaLaunchKernelEx.
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) {
  return misused("kernel<<<...>>>", {cudaErrorNotSupported, "is not simulated: launch by cudaLaunchKernelEx"});
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                               cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelExC(&config, kernel, arguments);
}
}
