// SPDX-License-Identifier: Apache-2.0
// Memory of the host that devices reach: managed and registered memory, what a pointer points to; pitched blocks.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <limits>

#include "kernels/simulated_gpu/cudart/runtime.h"

using namespace gradring::simulated_gpu;

namespace {

/// Of an H100.
constexpr std::size_t kPitchAlignment = 512;

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();

std::size_t pitched(std::size_t width) {
  return width > kMost - kPitchAlignment ? kMost : (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
}

/// The product, or kMost, which is more than any device has.
std::size_t product(std::size_t a, std::size_t b) { return b != 0 && a > kMost / b ? kMost : a * b; }

/// Advice has no effect, but must be of managed memory.
cudaError_t advised(const char* name, const void* data) {
  return call(name, [&](Call& call) {
    call.on_current();
    const Allocation* const block = call.rt.allocation_of(data);
    if (!block || block->kind != Allocation::Kind::managed)
      if (!call.rt.modules.is_managed(data)) throw Misuse{cudaErrorInvalidValue, "memory that is not managed"};
  });
}

cudaMemoryType type_of(const Allocation& block) {
  switch (block.kind) {
    case Allocation::Kind::device:
    case Allocation::Kind::pool: return cudaMemoryTypeDevice;
    case Allocation::Kind::pinned:
    case Allocation::Kind::registered: return cudaMemoryTypeHost;
    case Allocation::Kind::managed: return cudaMemoryTypeManaged;
  }
  return cudaMemoryTypeUnregistered;
}

}  // namespace

extern "C" {

/// Memory of the host that all devices reach. It counts as written, since the host writes it unseen.
cudaError_t cudaMallocManaged(void** data, std::size_t bytes, unsigned flags) {
  return call("cudaMallocManaged", [&](Call& call) {
    const int device = call.on_current().index();
    call.refuse_in_captures();
    *data = nullptr;
    if (bytes == 0) throw Misuse{cudaErrorInvalidValue, "0 bytes"};
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
      throw Misuse{cudaErrorInvalidValue, joined("unknown flags ", flags)};
    void* const made = call.rt.addresses.map(bytes);
    if (!made) throw Refusal{cudaErrorMemoryAllocation};
    call.rt.allocations.insert_or_assign(
        made, Allocation{.bytes = bytes, .device = device, .kind = Allocation::Kind::managed});
    call.rt.memory.add(made, bytes, device, true);
    *data = made;
  });
}

cudaError_t cudaMemPrefetchAsync(const void* data, std::size_t, cudaMemLocation, unsigned, cudaStream_t) {
  return advised("cudaMemPrefetchAsync", data);
}

cudaError_t cudaMemAdvise(const void* data, std::size_t, cudaMemoryAdvise, cudaMemLocation) {
  return advised("cudaMemAdvise", data);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void* data, std::size_t, unsigned) {
  return advised("cudaStreamAttachMemAsync", data);
}

cudaError_t cudaHostRegister(void* data, std::size_t bytes, unsigned) {
  return call("cudaHostRegister", [&](Call& call) {
    const int device = call.on_current().index();
    call.refuse_in_captures();
    if (!data || bytes == 0) throw Misuse{cudaErrorInvalidValue, "no bytes"};
    if (const Allocation* const known = call.rt.allocation_of(data); known && !known->is_freed)
      throw Misuse{cudaErrorHostMemoryAlreadyRegistered, "memory that CUDA knows already"};
    if (bytes > kMost - reinterpret_cast<std::uintptr_t>(data))
      throw Misuse{cudaErrorInvalidValue, joined(bytes, " bytes, which go beyond the last address")};
    call.rt.memory.add(data, bytes, device, true);
    call.rt.allocations.insert_or_assign(
        data, Allocation{.bytes = bytes, .device = device, .kind = Allocation::Kind::registered});
  });
}

cudaError_t cudaHostUnregister(void* data) {
  return call("cudaHostUnregister", [&](Call& call) {
    call.release(this_thread().device);
    call.refuse_in_captures();
    const auto found = call.rt.allocations.find(data);
    if (found == call.rt.allocations.end() || found->second.kind != Allocation::Kind::registered)
      throw Misuse{cudaErrorHostMemoryNotRegistered, "memory that was not registered"};
    call.rt.allocations.erase(found);
    call.lock.unlock();
    call.rt.scheduler.wait_for_all();
    call.rt.memory.remove(data);
  });
}

/// The same address, as with unified addressing.
cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* data, unsigned) {
  return call("cudaHostGetDevicePointer", [&](Call& call) {
    const Allocation* const block = call.rt.allocation_of(data);
    if (!block || block->is_freed || type_of(*block) != cudaMemoryTypeHost)
      throw Misuse{cudaErrorInvalidValue, "memory that is not pinned"};
    *device_pointer = data;
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* data) {
  return call("cudaHostGetFlags", [&](Call& call) {
    const Allocation* const block = call.rt.allocation_of(data);
    if (!block || block->is_freed || type_of(*block) != cudaMemoryTypeHost)
      throw Misuse{cudaErrorInvalidValue, "memory that is not pinned"};
    *flags = cudaHostAllocPortable | cudaHostAllocMapped;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  return call("cudaPointerGetAttributes", [&](Call& call) {
    constexpr int kNoDevice = -2;  // as CUDA has it of pageable memory
    *attributes = {};
    attributes->device = kNoDevice;
    attributes->hostPointer = const_cast<void*>(data);
    if (const Allocation* const block = call.rt.allocation_of(data); block && !block->is_freed) {
      attributes->type = type_of(*block);
      attributes->device = block->device;
      attributes->devicePointer = const_cast<void*>(data);
      if (attributes->type == cudaMemoryTypeDevice) attributes->hostPointer = nullptr;
    } else if (const GlobalMemory::Block* const variable =
                   call.rt.memory.find(reinterpret_cast<std::uintptr_t>(data), 1)) {
      attributes->type = variable->is_pinned_host ? cudaMemoryTypeManaged : cudaMemoryTypeDevice;
      attributes->device = variable->device;
      attributes->devicePointer = const_cast<void*>(data);
      if (!variable->is_pinned_host) attributes->hostPointer = nullptr;
    }
  });
}

cudaError_t cudaMallocPitch(void** data, std::size_t* pitch, std::size_t width, std::size_t height) {
  *pitch = pitched(width);
  return cudaMalloc(data, product(*pitch, height));
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* data, cudaExtent extent) {
  *data = {nullptr, pitched(extent.width), extent.width, extent.height};
  return cudaMalloc(&data->ptr, product(product(data->pitch, extent.height), extent.depth));
}
}
