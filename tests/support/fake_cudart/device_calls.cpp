// SPDX-License-Identifier: Apache-2.0
// Devices, errors and memory.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tests/support/fake_cudart/objects.h"

using namespace gradring::tests;

namespace {

constexpr std::size_t kDeviceBytes = std::size_t{1} << 32;
constexpr int kVersion = CUDART_VERSION;

cudaError_t allocate(void** data, std::size_t bytes) {
  if (bytes > kDeviceBytes) return cudaErrorMemoryAllocation;
  *data = std::malloc(bytes);
  if (!*data) return cudaErrorMemoryAllocation;
  fake_cuda().alive.insert(*data);
  return cudaSuccess;
}

cudaError_t release(void* data) {
  if (fake_cuda().alive.erase(data) == 0) return cudaErrorInvalidValue;
  std::free(data);
  return cudaSuccess;
}

bool exists(int device) { return device >= 0 && device < FakeCuda::kDevices; }

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = FakeCuda::kDevices;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}

/// From CUDA 12 on, this opens the context.
cudaError_t cudaSetDevice(int device) {
  if (!exists(device)) return cudaErrorInvalidDevice;
  const std::lock_guard lock(fake_cuda().mutex);
  if (fake_cuda().lost) return cudaErrorDevicesUnavailable;
  current_device() = device;
  open_context("cudaSetDevice");
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!exists(device)) return cudaErrorInvalidDevice;
  switch (attribute) {
    case cudaDevAttrMemoryPoolsSupported: *value = 1; break;
    case cudaDevAttrMultiProcessorCount: *value = 2; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    default: return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!exists(device)) return cudaErrorInvalidDevice;
  *properties = {};
  std::strcpy(properties->name, "fake");
  properties->totalGlobalMem = kDeviceBytes;
  properties->major = 9;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", static_cast<unsigned>(device));
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "an error of the fake runtime"; }
const char* cudaGetErrorString(cudaError_t) { return "an error of the fake runtime"; }

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaMemGetInfo");
  *free = *total = kDeviceBytes;
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaMemPoolCreate", properties->location.id);
  return make(pool, FakePool{properties->location.id});
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaMemPoolDestroy", of(pool).device);
  return destroy(pool);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr, void*) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaMemPoolSetAttribute", of(pool).device);
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr, void* value) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaMemPoolGetAttribute", of(pool).device);
  const unsigned long long none = 0;
  std::memcpy(value, &none, sizeof none);
  return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void** data, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaMallocFromPoolAsync", of(stream).device);
  if (of(pool).device != of(stream).device) return cudaErrorInvalidValue;
  return allocate(data, bytes);
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaFreeAsync", of(stream).device);
  return release(data);
}

cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  if (const auto during = std::exchange(fake_cuda().during_host_alloc, nullptr)) during();
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaHostAlloc");
  if (breaks_capture()) return cudaErrorStreamCaptureUnsupported;
  return allocate(data, bytes);
}

/// May wait for all work of the device.
cudaError_t cudaFreeHost(void* data) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaFreeHost");
  if (breaks_capture()) return cudaErrorStreamCaptureUnsupported;
  if (fake_cuda().hangs) fake_cuda().blocked.emplace_back("cudaFreeHost");
  return release(data);
}
}
