// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/pinned_memory.h"

#include <cuda_runtime.h>

#include <string>

#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels {

Buffer PinnedMemory::allocate(std::size_t bytes) {
  make_current(index_);
  void* data = nullptr;
  const cudaError_t result = cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (result == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw DeviceError("no " + std::to_string(bytes) + " bytes of pinned host memory left: lower the batch size");
  }
  cuda_check(result, "cudaHostAlloc");
  return Buffer(data, bytes, *this);
}

void PinnedMemory::release(void* data, std::size_t) noexcept { (void)cudaFreeHost(data); }

}  // namespace gradring::kernels
