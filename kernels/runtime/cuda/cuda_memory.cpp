// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/cuda_memory.h"

#include <cuda_runtime.h>
#include <cstdint>
#include <string>

#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/deadline.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels {
namespace {

/// The pool's stream has no work but the pool's own, so it is never far behind.
constexpr std::chrono::seconds kLongestWait(30);

bool finish(cudaStream_t stream, cudaError_t& state) {
  return poll_until([&] { return (state = cudaStreamQuery(stream)) != cudaErrorNotReady; },
                    Deadline::after(kLongestWait));
}

cudaMemPool_t make_pool(int index) {
  make_current(index);
  int supported = 0;
  cuda_check(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, index), "cudaDeviceGetAttribute");
  check<DeviceError>(
      supported != 0,
      "cuda:" + std::to_string(index) + " has no memory pools, which gradring needs: a virtual GPU, or an old driver?");
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = index;
  cudaMemPool_t pool = nullptr;
  cuda_check(cudaMemPoolCreate(&pool, &properties), "cudaMemPoolCreate");
  return pool;
}

}  // namespace

void DevicePool::Destroy::operator()(cudaMemPool_t pool) const noexcept { (void)cudaMemPoolDestroy(pool); }
void DevicePool::Destroy::operator()(cudaStream_t stream) const noexcept { (void)cudaStreamDestroy(stream); }

DevicePool::DevicePool(int index) : index_(index), pool_(make_pool(index)) {
  std::uint64_t keep_all = UINT64_MAX;
  cuda_check(cudaMemPoolSetAttribute(pool_.get(), cudaMemPoolAttrReleaseThreshold, &keep_all),
             "cudaMemPoolSetAttribute");
  cudaStream_t stream = nullptr;
  cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_.reset(stream);
}

DevicePool::~DevicePool() {
  cudaError_t ignored = cudaSuccess;
  finish(stream_.get(), ignored);
}

Buffer DevicePool::allocate(std::size_t bytes) {
  make_current(index_);
  void* data = nullptr;
  const cudaError_t result = cudaMallocFromPoolAsync(&data, bytes, pool_.get(), stream_.get());
  // More than CUDA can address is an invalid value to it.
  if (result == cudaErrorMemoryAllocation || result == cudaErrorInvalidValue) {
    (void)cudaGetLastError();
    std::size_t total = 0;
    const std::size_t free = free_bytes(total);
    if (result == cudaErrorMemoryAllocation || bytes > total)
      throw DeviceError(out_of_memory("cuda:" + std::to_string(index_), bytes, free, total));
  }
  cuda_check(result, "cudaMallocFromPoolAsync");
  Buffer buffer(data, bytes, *this);
  // Only after this point may other streams, which know nothing of the pool's, use the block.
  cudaError_t state = cudaSuccess;
  check<DeviceError>(finish(stream_.get(), state), "the device did not hand out memory before the deadline: it hangs");
  cuda_check(state, "cudaMallocFromPoolAsync");
  return buffer;
}

void DevicePool::release(void* data, std::size_t) noexcept { (void)cudaFreeAsync(data, stream_.get()); }

std::size_t DevicePool::free_bytes(std::size_t& total) const {
  std::size_t free = 0;
  cuda_check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;
  cuda_check(cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrReservedMemCurrent, &reserved),
             "cudaMemPoolGetAttribute");
  cuda_check(cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrUsedMemCurrent, &used), "cudaMemPoolGetAttribute");
  return free + static_cast<std::size_t>(reserved - used);
}

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
