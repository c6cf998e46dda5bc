// SPDX-License-Identifier: Apache-2.0
// Memory of devices, from pools in the order of streams, and pinned memory.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "kernels/simulated_gpu/cudart/runtime.h"

using namespace gradring::simulated_gpu;

namespace {

std::string bytes_at(std::size_t bytes, const void* data) {
  char text[64];
  std::snprintf(text, sizeof text, "%zu bytes at %p", bytes, data);
  return text;
}

/// Bytes of a device's memory that are taken.
std::size_t reserved_on(Runtime& rt, int device) {
  std::size_t bytes = rt.malloc_use(device)->reserved;
  for (const auto& [number, pool] : rt.pools.all())
    if (pool.device == device) bytes += pool.use->reserved;
  return bytes;
}

/// Takes the bytes; what was freed before is used again first.
bool take(Runtime& rt, PoolUse& use, int device, std::size_t bytes) {
  if (bytes > rt.device(device).card().memory_bytes) return false;
  const std::uint64_t used = use.used + bytes;
  const std::uint64_t more = used > use.reserved ? used - use.reserved : 0;
  if (more > rt.device(device).card().memory_bytes - reserved_on(rt, device)) return false;
  use.used += bytes;
  use.reserved += more;
  return true;
}

/// Memory of the host for such a block, of which the device `takes` its own.
///
/// Errors    Refusal if either has none left.
void* mapped(Runtime& rt, PoolUse& use, int device, std::size_t bytes) {
  if (!take(rt, use, device, bytes)) throw Refusal{cudaErrorMemoryAllocation};
  if (void* const made = rt.addresses.map(bytes)) return made;
  rt.device(device).fail(cudaErrorMemoryAllocation, joined("this host has no memory left for ", bytes,
                                                           " bytes of device memory: lower the batch size"));
  throw Refusal{cudaErrorMemoryAllocation};
}

void give_back(PoolUse& use, std::size_t bytes) {
  use.used -= bytes;
  use.reserved = std::max<std::uint64_t>(use.used, std::min<std::uint64_t>(use.reserved, use.keep));
}

/// Work that lets other work use the block.
StreamWork allocating(Runtime& rt, void* data, const Allocation& block) {
  return {.run =
              [&rt, data, bytes = block.bytes, device = block.device, is_there = block.is_there](CountedWork*) {
                rt.memory.add(data, bytes, device, false);
                rt.memory.note_use(reinterpret_cast<std::uintptr_t>(data), bytes, true, "cudaMallocFromPoolAsync");
                *is_there = true;
                return 0.0;
              },
          .kind = CountedWork::Kind::allocation,
          .name = "cudaMallocFromPoolAsync"};
}

StreamWork freeing(Runtime& rt, void* data, const Allocation& block) {
  const auto run = [&rt, data, bytes = block.bytes, use = block.use, is_there = block.is_there](CountedWork*) {
    if (!*is_there)
      throw IllegalAccess(
          "cudaFreeAsync frees " + bytes_at(bytes, data) +
          " before the stream of cudaMallocFromPoolAsync has allocated them: let the freeing stream wait for "
          "an event of the other");
    rt.memory.note_use(reinterpret_cast<std::uintptr_t>(data), bytes, true, "cudaFreeAsync");
    rt.memory.remove(data);
    rt.addresses.release(data);
    give_back(*use, bytes);
    return 0.0;
  };
  return {.run = run, .kind = CountedWork::Kind::allocation, .name = "cudaFreeAsync"};
}

/// The block that begins at `data`, is of one of the kinds, and was not freed.
Allocation& block_at(Call& call, void* data, std::initializer_list<Allocation::Kind> kinds, const char* what) {
  const auto found = call.rt.allocations.find(data);
  if (found == call.rt.allocations.end() || std::ranges::find(kinds, found->second.kind) == kinds.end())
    throw Misuse{cudaErrorInvalidValue, joined("an address that is not the begin of a block of ", what)};
  if (found->second.is_freed)
    throw Misuse{cudaErrorInvalidValue, bytes_at(found->second.bytes, data) + ", which were freed before"};
  return found->second;
}

/// Waits for all work, which may use the block, and gives it back.
void free_now(Call& call, void* data, Allocation& block) {
  block.is_freed = true;
  const Allocation freed = block;
  call.lock.unlock();
  call.rt.scheduler.wait_for_all();
  call.rt.print_device_output();
  if (freed.kind != Allocation::Kind::device)
    call.rt.host_uses.forget(reinterpret_cast<std::uintptr_t>(data), freed.bytes);
  call.rt.memory.remove(data);
  if (freed.kind != Allocation::Kind::registered) call.rt.addresses.release(data);
  if (freed.use) give_back(*freed.use, freed.bytes);
}

}  // namespace

extern "C" {

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return call("cudaMemPoolCreate", [&](Call& call) {
    const int device = properties->location.id;
    if (properties->location.type != cudaMemLocationTypeDevice || properties->allocType != cudaMemAllocationTypePinned)
      throw Misuse{cudaErrorNotSupported, "a pool of something else than a device's memory, which is not simulated"};
    if (!call.rt.has_device(device)) throw Misuse{cudaErrorInvalidValue, joined("device ", device)};
    call.on(device);
    *pool = call.rt.pools.add({.device = device});
  });
}

/// Blocks that are not freed stay.
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return call("cudaMemPoolDestroy", [&](Call& call) {
    const int device = call.rt.pools.at(pool).device;
    call.release(device);
    if (const auto found = call.rt.default_pools.find(device);
        found != call.rt.default_pools.end() && found->second == pool)
      throw Misuse{cudaErrorInvalidValue, "the default pool of a device, which cannot be destroyed"};
    call.rt.pools.remove(pool);
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call("cudaMemPoolSetAttribute", [&](Call& call) {
    const Pool& changed = call.rt.pools.at(pool);
    call.on(changed.device);
    if (attribute != cudaMemPoolAttrReleaseThreshold)
      throw Misuse{cudaErrorNotSupported, joined("attribute ", attribute, ", which is not simulated")};
    std::uint64_t keep = 0;
    std::memcpy(&keep, value, sizeof keep);
    changed.use->keep = keep;
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call("cudaMemPoolGetAttribute", [&](Call& call) {
    const Pool& asked = call.rt.pools.at(pool);
    call.on(asked.device);
    std::uint64_t bytes = 0;
    switch (attribute) {
      case cudaMemPoolAttrReleaseThreshold: bytes = asked.use->keep; break;
      case cudaMemPoolAttrReservedMemCurrent: bytes = asked.use->reserved; break;
      case cudaMemPoolAttrUsedMemCurrent: bytes = asked.use->used; break;
      default: throw Misuse{cudaErrorNotSupported, joined("attribute ", attribute, ", which is not simulated")};
    }
    std::memcpy(value, &bytes, sizeof bytes);
  });
}

cudaError_t cudaMallocFromPoolAsync(void** data, std::size_t bytes, cudaMemPool_t pool_handle,
                                    cudaStream_t stream_handle) {
  return call("cudaMallocFromPoolAsync", [&](Call& call) {
    const Pool& pool = call.rt.pools.at(pool_handle);
    Stream& stream = call.stream(stream_handle);
    call.on(stream.device);
    if (stream.capture)
      throw Misuse{cudaErrorNotSupported, "memory of a graph, which is not simulated: allocate before the capture"};
    *data = nullptr;
    if (bytes == 0) throw Misuse{cudaErrorInvalidValue, "0 bytes"};
    void* const made = mapped(call.rt, *pool.use, pool.device, bytes);
    const auto& [address, block] =
        *call.rt.allocations
             .insert_or_assign(
                 made,
                 Allocation{.bytes = bytes, .device = pool.device, .kind = Allocation::Kind::pool, .use = pool.use})
             .first;
    call.rt.enqueue(stream, allocating(call.rt, made, block));
    *data = made;
  });
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t handle) {
  return call("cudaFreeAsync", [&](Call& call) {
    Stream& stream = call.stream(handle);
    call.on(stream.device);
    Allocation& block = block_at(call, data, {Allocation::Kind::pool, Allocation::Kind::device}, "a memory pool");
    if (stream.capture)
      throw Misuse{cudaErrorNotSupported, "memory that is not of the graph: free it after the capture"};
    block.is_freed = true;
    call.rt.enqueue(stream, freeing(call.rt, data, block));
  });
}

cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  return call("cudaHostAlloc", [&](Call& call) {
    const Device& device = call.on_current();
    call.refuse_in_captures();
    *data = nullptr;
    if (bytes == 0) throw Misuse{cudaErrorInvalidValue, "0 bytes"};
    void* const made = call.rt.addresses.map(bytes);
    if (!made) throw Refusal{cudaErrorMemoryAllocation};
    call.rt.allocations.insert_or_assign(made, Allocation{.bytes = bytes, .device = device.index()});
    call.rt.memory.add(made, bytes, device.index(), true);
    *data = made;
  });
}

/// Waits for all work, which may use it.
cudaError_t cudaFreeHost(void* data) {
  return call("cudaFreeHost", [&](Call& call) {
    call.release(this_thread().device);
    call.refuse_in_captures();
    if (!data) return;
    free_now(call, data, block_at(call, data, {Allocation::Kind::pinned}, "pinned memory"));
  });
}

/// Of 0 bytes: a null pointer.
cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  return call("cudaMalloc", [&](Call& call) {
    const int device = call.on_current().index();
    call.refuse_in_captures();
    *data = nullptr;
    if (bytes == 0) return;
    const std::shared_ptr<PoolUse>& use = call.rt.malloc_use(device);
    void* const made = mapped(call.rt, *use, device, bytes);
    Allocation block{.bytes = bytes, .device = device, .kind = Allocation::Kind::device, .use = use};
    *block.is_there = true;
    call.rt.allocations.insert_or_assign(made, block);
    call.rt.memory.add(made, bytes, device, false);
    *data = made;
  });
}

/// Waits for all work, as CUDA does.
cudaError_t cudaFree(void* data) {
  return call("cudaFree", [&](Call& call) {
    call.release(this_thread().device);
    if (!data) return;
    call.refuse_in_captures();
    free_now(call, data,
             block_at(call, data, {Allocation::Kind::device, Allocation::Kind::pool, Allocation::Kind::managed},
                      "device memory"));
  });
}

cudaError_t cudaMallocHost(void** data, std::size_t bytes) { return cudaHostAlloc(data, bytes, cudaHostAllocDefault); }

cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t stream) {
  cudaMemPool_t pool = nullptr;
  const cudaError_t found =
      call("cudaMallocAsync", [&](Call& call) { pool = call.rt.default_pool(call.stream(stream).device); });
  return found == cudaSuccess ? cudaMallocFromPoolAsync(data, bytes, pool, stream) : found;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return call("cudaDeviceGetDefaultMemPool", [&](Call& call) {
    if (!call.rt.has_device(device)) throw Misuse{cudaErrorInvalidDevice, joined("device ", device)};
    *pool = call.rt.default_pool(device);
  });
}

/// That of cudaDeviceSetMemPool, which is not simulated.
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }
}
