// SPDX-License-Identifier: Apache-2.0
// Devices, versions and errors.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "kernels/simulated_gpu/cards/card.h"
#include "kernels/simulated_gpu/cudart/runtime.h"

using namespace gradring::simulated_gpu;

namespace {

Device& existing(Call& call, int index) {
  if (!call.rt.has_device(index))
    throw Misuse{cudaErrorInvalidDevice, joined("device ", index, " of ", call.rt.devices.size(), " simulated ones")};
  return call.rt.device(index);
}

/// About what a context takes on such cards.
constexpr std::size_t kContextBytes = std::size_t{512} << 20;
}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&](Call& call) {
    *count = static_cast<int>(call.rt.devices.size());
    if (*count == 0) throw Refusal{cudaErrorNoDevice};
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&](Call&) { *device = this_thread().device; });
}

/// Opens the device's context, as it does from CUDA 12 on.
cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", [&](Call& call) {
    existing(call, device).has_context = true;
    HostThread& thread = this_thread();
    thread.device = device;
    thread.has_selected = thread.has_context = true;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return call("cudaDriverGetVersion", [&](Call&) { *version = CUDART_VERSION; });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return call("cudaRuntimeGetVersion", [&](Call&) { *version = CUDART_VERSION; });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", [&](Call& call) {
    const auto known = attribute_of(existing(call, device), attribute);
    if (!known)
      throw Misuse{cudaErrorInvalidValue, joined("attribute ", attribute, ", which the simulated GPU does not know")};
    *value = *known;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call("cudaGetDeviceProperties", [&](Call& call) { *properties = properties_of(existing(call, device)); });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return call("cudaDeviceGetPCIBusId", [&](Call& call) {
    constexpr int kLength = 13;  // with the terminator
    const int number = existing(call, device).number();
    if (length < kLength) throw Misuse{cudaErrorInvalidValue, joined("room for ", length, " of 13 characters")};
    std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", static_cast<unsigned>(number));
  });
}

/// What pools hold counts as used.
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call("cudaMemGetInfo", [&](Call& call) {
    const Device& device = call.on_current();
    *total = device.card().memory_bytes;
    std::size_t used = kContextBytes + call.rt.malloc_use(device.index())->reserved;
    for (const auto& [number, pool] : call.rt.pools.all())
      if (pool.device == device.index()) used += pool.use->reserved;
    *free = *total - std::min(*total, used);
  });
}

/// The work of the current device.
cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [&](Call& call) {
    const int device = call.on_current().index();
    call.refuse_in_captures();
    std::vector<Scheduler::WorkPtr> ends;
    const auto add = [&](const Stream& stream) {
      if (stream.device == device && stream.tail) ends.push_back(stream.tail);
    };
    for (const auto& [number, stream] : call.rt.streams.all()) add(stream);
    call.rt.default_streams.for_each(add);
    if (const auto orphans = call.rt.orphans.extract(device)) ends.push_back(orphans.mapped());
    call.lock.unlock();
    for (const Scheduler::WorkPtr& end : ends) call.rt.scheduler.wait(end);
    call.rt.print_device_output();
    call.lock.lock();
    call.on(device);
  });
}

cudaError_t cudaPeekAtLastError() {
  const HostThread& thread = this_thread();
  Runtime& rt = runtime();
  const cudaError_t failure = rt.has_device(thread.device) ? rt.device(thread.device).failure() : cudaSuccess;
  return failure != cudaSuccess ? failure : thread.last_error;
}

/// A failed device's error stays.
cudaError_t cudaGetLastError() {
  const cudaError_t last = cudaPeekAtLastError();
  this_thread().last_error = cudaSuccess;
  return last;
}

const char* cudaGetErrorName(cudaError_t error) { return error_name(error); }

/// For an error that a simulated GPU failed with, also why.
const char* cudaGetErrorString(cudaError_t error) { return described(error); }
}
