// SPDX-License-Identifier: Apache-2.0
// What the host code that nvcc writes calls: before main, and for kernel<<<...>>>(...).
#include <cuda_runtime_api.h>

#include "kernels/simulated_gpu/cudart/kernel_table.h"
#include "kernels/simulated_gpu/cudart/runtime.h"

using namespace gradring;
using namespace gradring::simulated_gpu;

namespace {

/// Between the <<<...>>> of a launch and its arguments, which the thread may evaluate with launches of their own.
struct Configuration {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

std::vector<Configuration>& configurations() {
  static thread_local std::vector<Configuration> pushed;
  return pushed;
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) { return kernel_table().add_binary(wrapper); }
void __cudaRegisterFatBinaryEnd(void**) {}
/// At the end of the process.
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** binary, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  kernel_table().add_kernel(binary, host, name);
}

void __cudaRegisterVar(void** binary, char* host, char*, const char* name, int, std::size_t bytes, int, int) {
  kernel_table().add_variable(binary, host, name, bytes);
}

void __cudaRegisterManagedVar(void** binary, void** slot, char*, const char* name, int, std::size_t bytes, int, int) {
  kernel_table().add_managed_variable(binary, slot, name, bytes);
}

/// Before the host uses a managed variable for the first time.
char __cudaInitModule(void** binary) {
  const cudaError_t result = call("__cudaInitModule", [&](Call& call) {
    const Device& device = call.on_current();
    for (const ptx::Module* module : kernel_table().modules_of(binary, device.card().compute_capability()))
      call.rt.variables(*module, device.index());
  });
  return result == cudaSuccess ? 1 : 0;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream) {
  configurations().push_back({grid, block, shared_bytes, stream});
  return 0;
}

/// Our own code launches by cudaLaunchKernelEx, which takes a stream in any case.
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
  if (runtime().options.is_strict)
    return misused("kernel<<<...>>>", {cudaErrorNotSupported, "is not simulated: launch by cudaLaunchKernelEx"});
  if (configurations().empty()) return noted(cudaErrorMissingConfiguration);
  const Configuration& top = configurations().back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  configurations().pop_back();
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host) { return __cudaGetKernel(kernel, host); }

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                               cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}
}
