// SPDX-License-Identifier: Apache-2.0
// Kernels: their launches are counted and take time, and do nothing. Below, what nvcc's host code calls.
#include "tests/support/fake_cudart/objects.h"

using namespace gradring::tests;

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaFuncGetAttributes");
  const auto found = fake_cuda().static_shared.find(kernel);
  if (found == fake_cuda().static_shared.end()) return cudaErrorInvalidDeviceFunction;
  *attributes = {};
  attributes->sharedSizeBytes = found->second;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaFuncSetAttribute");
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaErrorInvalidValue;
  fake_cuda().allowed_shared[kernel] = static_cast<std::size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, std::size_t) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  *blocks = 1;
  return cudaSuccess;
}

/// A stream must be of the current device; a block has 48 KB, static and dynamic together, unless allowed more.
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void**) {
  constexpr std::size_t kWithoutAsking = 48 * 1024;
  FakeCuda& fake = fake_cuda();
  const std::lock_guard lock(fake.mutex);
  FakeStream& stream = of(config->stream);
  open_context("cudaLaunchKernelExC", stream.device);
  if (stream.device != current_device()) return cudaErrorInvalidResourceHandle;
  const std::size_t dynamic = config->dynamicSmemBytes;
  if (fake.static_shared[kernel] + dynamic > kWithoutAsking && fake.allowed_shared[kernel] < dynamic)
    return cudaErrorInvalidValue;
  return enqueue(stream, [] {});
}

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*) {}
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) { return cudaErrorNotSupported; }
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*) { return cudaErrorNotSupported; }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}
}
