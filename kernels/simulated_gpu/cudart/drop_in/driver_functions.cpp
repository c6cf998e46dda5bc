// SPDX-License-Identifier: Apache-2.0
// The functions of libcuda.so.1 that programs of the runtime call: devices, contexts, memory and errors, by those of
// the runtime, whose error codes are nearly the same. The names are those that cuda.h gives them (cuMemAlloc_v2).
//
// libcuda.so.1 in the folder of this library is empty and needs it, so these are found there.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>

namespace {

struct Name {
  CUresult error;
  const char* text;
};

/// Of the errors that a simulated GPU returns, and some more.
constexpr Name kNames[] = {{CUDA_SUCCESS, "CUDA_SUCCESS"},
                           {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
                           {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                           {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
                           {CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED"},
                           {CUDA_ERROR_STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY"},
                           {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
                           {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
                           {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
                           {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
                           {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                           {CUDA_ERROR_UNSUPPORTED_LIMIT, "CUDA_ERROR_UNSUPPORTED_LIMIT"},
                           {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
                           {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
                           {CUDA_ERROR_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND"},
                           {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
                           {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE"},
                           {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
                           {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
                           {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                           {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
                           {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT"},
                           {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
                           {CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"},
                           {CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"},
                           {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
                           {CUDA_ERROR_ASSERT, "CUDA_ERROR_ASSERT"},
                           {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
                           {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
                           {CUDA_ERROR_ILLEGAL_INSTRUCTION, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
                           {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS"},
                           {CUDA_ERROR_INVALID_ADDRESS_SPACE, "CUDA_ERROR_INVALID_ADDRESS_SPACE"},
                           {CUDA_ERROR_INVALID_PC, "CUDA_ERROR_INVALID_PC"},
                           {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
                           {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"},
                           {CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED"},
                           {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
                           {CUDA_ERROR_SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY"},
                           {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
                           {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
                           {CUDA_ERROR_STREAM_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE"},
                           {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
                           {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
                           {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
                           {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
                           {CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT"},
                           {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"},
                           {CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"},
                           {CUDA_ERROR_INVALID_CLUSTER_SIZE, "CUDA_ERROR_INVALID_CLUSTER_SIZE"},
                           {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"}};

/// Null for what is no error of the driver.
const char* name_of(CUresult error) {
  const auto found = std::ranges::find(kNames, error, &Name::error);
  return found == std::end(kNames) ? nullptr : found->text;
}

/// The runtime has a few errors of its own, for what the driver calls an invalid value.
CUresult result_of(cudaError_t error) {
  const auto result = static_cast<CUresult>(error);
  return name_of(result) != nullptr ? result : CUDA_ERROR_INVALID_VALUE;
}

/// A device has one context: its primary one.
CUcontext context_of(int device) { return reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 1); }
int device_of(CUcontext context) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1; }

CUresult select(CUcontext context) { return context ? result_of(cudaSetDevice(device_of(context))) : CUDA_SUCCESS; }

void* pointer_of(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
const void* constant_of(CUdeviceptr address) { return reinterpret_cast<const void*>(address); }

}  // namespace

extern "C" {

CUresult cuInit(unsigned) {
  int count = 0;
  return result_of(cudaGetDeviceCount(&count));
}
CUresult cuDriverGetVersion(int* version) { return result_of(cudaDriverGetVersion(version)); }
CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = name_of(error);
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = name_of(error) != nullptr ? cudaGetErrorString(static_cast<cudaError_t>(error)) : nullptr;
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int* count) { return result_of(cudaGetDeviceCount(count)); }
CUresult cuDeviceGet(CUdevice* device, int index) {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess) return result_of(counted);
  if (index < 0 || index >= count) return CUDA_ERROR_INVALID_DEVICE;
  *device = index;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return result_of(cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device));
}
CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  cudaDeviceProp properties;
  const cudaError_t found = cudaGetDeviceProperties(&properties, device);
  if (found == cudaSuccess && length > 0) {
    std::strncpy(name, properties.name, static_cast<std::size_t>(length) - 1);
    name[length - 1] = '\0';
  }
  return result_of(found);
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  cudaDeviceProp properties;
  const cudaError_t found = cudaGetDeviceProperties(&properties, device);
  if (found == cudaSuccess) *uuid = properties.uuid;
  return result_of(found);
}
CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  cudaDeviceProp properties;
  const cudaError_t found = cudaGetDeviceProperties(&properties, device);
  if (found == cudaSuccess) *bytes = properties.totalGlobalMem;
  return result_of(found);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = context_of(device);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxSetFlags(CUdevice, unsigned) { return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* is_active) {
  *flags = 0;
  *is_active = 1;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  int device = 0;
  const cudaError_t found = cudaGetDevice(&device);
  *context = found == cudaSuccess ? context_of(device) : nullptr;
  return result_of(found);
}
CUresult cuCtxSetCurrent(CUcontext context) { return select(context); }
CUresult cuCtxPushCurrent(CUcontext context) { return select(context); }
CUresult cuCtxPopCurrent(CUcontext* context) { return context ? cuCtxGetCurrent(context) : CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice* device) { return result_of(cudaGetDevice(device)); }
CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams*, unsigned, CUdevice device) {
  *context = context_of(device);
  return select(*context);
}
CUresult cuCtxDestroy(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxSynchronize() { return result_of(cudaDeviceSynchronize()); }

CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) { return result_of(cudaMemGetInfo(free, total)); }
CUresult cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t made = cudaMalloc(&data, bytes);
  *address = reinterpret_cast<CUdeviceptr>(data);
  return result_of(made);
}
CUresult cuMemFree(CUdeviceptr address) { return result_of(cudaFree(pointer_of(address))); }
CUresult cuMemAllocHost(void** data, std::size_t bytes) { return result_of(cudaMallocHost(data, bytes)); }
CUresult cuMemFreeHost(void* data) { return result_of(cudaFreeHost(data)); }
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) {
  return result_of(cudaMemcpy(pointer_of(to), from, bytes, cudaMemcpyHostToDevice));
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
  return result_of(cudaMemcpy(to, constant_of(from), bytes, cudaMemcpyDeviceToHost));
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return result_of(cudaMemcpy(pointer_of(to), constant_of(from), bytes, cudaMemcpyDeviceToDevice));
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return result_of(cudaMemcpyAsync(pointer_of(to), from, bytes, cudaMemcpyHostToDevice, stream));
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return result_of(cudaMemcpyAsync(to, constant_of(from), bytes, cudaMemcpyDeviceToHost, stream));
}
CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, std::size_t count) {
  return result_of(cudaMemset(pointer_of(to), value, count));
}
CUresult cuStreamSynchronize(CUstream stream) { return result_of(cudaStreamSynchronize(stream)); }

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  constexpr unsigned kFirstVersion = 12000;
  void* encode = nullptr;
  const cudaError_t found =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, kFirstVersion, 0, nullptr);
  if (found != cudaSuccess) return result_of(found);
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
      map, type, rank, address, sizes, strides, box, element_strides, interleave, swizzle, promotion, fill);
}
}
