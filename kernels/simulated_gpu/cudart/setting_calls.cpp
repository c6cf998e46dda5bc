// SPDX-License-Identifier: Apache-2.0
// Settings of devices and kernels, peer access, profilers. Hints of how fast something is to be have no effect here.
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <limits>

#include "kernels/simulated_gpu/cudart/runtime.h"

using namespace gradring::simulated_gpu;

namespace {

/// Calls that only have to be of a device that works.
cudaError_t accepted(const char* name) {
  return call(name, [](Call& call) { call.on_current(); });
}

void require_device(Call& call, int device) {
  if (!call.rt.has_device(device)) throw Misuse{cudaErrorInvalidDevice, joined("device ", device)};
}

/// CUDA C++ Programming Guide, compute capabilities: local memory of a thread, which has its stack; the description of
/// cudaLimitMaxL2FetchGranularity. Buffers are in the memory of the device.
std::size_t most_of(cudaLimit limit, const Card& card) {
  switch (limit) {
    case cudaLimitStackSize: return std::size_t{512} << 10;
    case cudaLimitMaxL2FetchGranularity: return 128;
    case cudaLimitPrintfFifoSize:
    case cudaLimitMallocHeapSize: return card.memory_bytes;
    default: return std::numeric_limits<std::size_t>::max();
  }
}

}  // namespace

extern "C" {

/// Ends all work and gives everything of the device back, after it was reported as left.
cudaError_t cudaDeviceReset() {
  return call("cudaDeviceReset", [&](Call& call) {
    const int device = this_thread().device;
    call.release(device);
    call.lock.unlock();
    call.rt.scheduler.wait_for_all();
    call.lock.lock();
    call.rt.print_device_output();
    call.rt.reset(device);
  });
}

cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return call("cudaGetDeviceFlags", [&](Call& call) {
    call.on_current();
    *flags = cudaDeviceMapHost;
  });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return call("cudaInitDevice", [&](Call& call) { require_device(call, device); });
}

/// The first that has what is asked for; the simulated ones are all alike.
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  return call("cudaChooseDevice", [&](Call& call) {
    require_device(call, 0);
    *device = 0;
  });
}

cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  return call("cudaDeviceGetLimit", [&](Call& call) {
    call.on_current();
    const auto found = call.rt.limits.find(limit);
    if (found == call.rt.limits.end()) throw Misuse{cudaErrorUnsupportedLimit, joined("limit ", limit)};
    *value = found->second;
  });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
  return call("cudaDeviceSetLimit", [&](Call& call) {
    call.on_current();
    const auto found = call.rt.limits.find(limit);
    if (found == call.rt.limits.end()) throw Misuse{cudaErrorUnsupportedLimit, joined("limit ", limit)};
    const std::size_t most = most_of(limit, call.rt.card);
    if (value > most)
      throw Misuse{cudaErrorInvalidValue, joined("limit ", limit, " is ", value, "; expected at most ", most)};
    found->second = value;
  });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return accepted("cudaDeviceSetCacheConfig"); }
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  *config = cudaFuncCachePreferNone;
  return accepted("cudaDeviceGetCacheConfig");
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return accepted("cudaDeviceSetSharedMemConfig"); }
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  *config = cudaSharedMemBankSizeFourByte;
  return accepted("cudaDeviceGetSharedMemConfig");
}
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return accepted("cudaFuncSetCacheConfig"); }
cudaError_t cudaFuncSetSharedMemConfig(const void*, cudaSharedMemConfig) {
  return accepted("cudaFuncSetSharedMemConfig");
}
/// Plain data, though arrays are not simulated.
cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
cudaError_t cudaCtxResetPersistingL2Cache() { return accepted("cudaCtxResetPersistingL2Cache"); }
cudaError_t cudaProfilerStart() { return accepted("cudaProfilerStart"); }
cudaError_t cudaProfilerStop() { return accepted("cudaProfilerStop"); }

/// Hints, but for what cudaStreamCopyAttributes would copy of them, which is nothing.
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID, const cudaStreamAttrValue*) {
  return call("cudaStreamSetAttribute", [&](Call& call) { call.on(call.stream(stream).device); });
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return call("cudaStreamCopyAttributes", [&](Call& call) {
    call.on(call.stream(from).device);
    call.on(call.stream(to).device);
  });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access, std::size_t count) {
  return call("cudaMemPoolSetAccess", [&](Call& call) {
    const int owner = call.rt.pools.at(pool).device;
    call.on(owner);
    for (std::size_t i = 0; i < count; ++i) {
      require_device(call, access[i].location.id);
      if (access[i].location.id != owner)
        call.rt.memory.set_reaches(access[i].location.id, owner, access[i].flags != cudaMemAccessFlagsProtNone);
    }
  });
}

/// What a pool keeps stays its own: nobody else needs it.
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t) {
  return call("cudaMemPoolTrimTo", [&](Call& call) { call.on(call.rt.pools.at(pool).device); });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call("cudaDeviceCanAccessPeer", [&](Call& call) {
    require_device(call, device);
    require_device(call, peer);
    *can = device != peer ? 1 : 0;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return call("cudaDeviceEnablePeerAccess", [&](Call& call) {
    const int device = call.on_current().index();
    require_device(call, peer);
    if (peer == device) throw Misuse{cudaErrorInvalidDevice, "the current device as its own peer"};
    if (flags != 0) throw Misuse{cudaErrorInvalidValue, joined("flags ", flags, ", expected 0")};
    if (!call.rt.memory.set_reaches(device, peer, true)) throw Refusal{cudaErrorPeerAccessAlreadyEnabled};
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return call("cudaDeviceDisablePeerAccess", [&](Call& call) {
    const int device = call.on_current().index();
    require_device(call, peer);
    if (!call.rt.memory.set_reaches(device, peer, false)) throw Refusal{cudaErrorPeerAccessNotEnabled};
  });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer) {
  return call("cudaDeviceGetP2PAttribute", [&](Call& call) {
    require_device(call, device);
    require_device(call, peer);
    *value = device != peer &&
                     (attribute == cudaDevP2PAttrAccessSupported || attribute == cudaDevP2PAttrNativeAtomicSupported)
                 ? 1
                 : 0;
  });
}
}
