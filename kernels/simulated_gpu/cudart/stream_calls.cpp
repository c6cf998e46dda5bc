// SPDX-License-Identifier: Apache-2.0
// Streams and events.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <memory>

#include "kernels/simulated_gpu/cudart/host_function.h"
#include "kernels/simulated_gpu/cudart/runtime.h"

using namespace gradring::simulated_gpu;

namespace {

/// Of an H100. A lower number goes first.
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

/// Invalidates the capture that a query of its stream or event breaks.
[[noreturn]] void refuse_query(Capture& capture, cudaError_t error, const char* what) {
  capture.invalidate(what);
  throw Misuse{error, what};
}

/// While a function of the host runs, this thread may not call CUDA.
struct HostFunctionScope {
  HostFunctionScope() { this_thread().in_host_function = true; }
  ~HostFunctionScope() { this_thread().in_host_function = false; }
};

/// Whether the work is done. Somebody waits for it, so if not, it is due.
bool query(Call& call, const Scheduler::WorkPtr& work) {
  if (call.rt.scheduler.is_done(work)) return true;
  call.rt.scheduler.request(work);
  return false;
}

/// The legacy stream is done when the blocking streams are which its next work would wait for.
void order_legacy(Call& call, Stream& stream) {
  if (stream.kind == Stream::Kind::legacy) call.rt.order_with_default(stream);
}

/// Work of `stream` is behind `event` from now on.
void wait_for(Call& call, Stream& stream, const Event& event) {
  order_legacy(call, stream);
  if (event.capture) {
    if (event.capture->has_ended())
      throw Misuse{cudaErrorInvalidValue, "an event that was recorded in a capture, which has ended"};
    if (stream.capture && stream.capture != event.capture) {
      stream.capture->invalidate("a wait for an event of another capture");
      event.capture->invalidate("a wait of another captured stream");
      throw Misuse{cudaErrorStreamCaptureMerge, "a wait of a captured stream for an event of another capture"};
    }
    event.capture->join(stream, event);
    return;
  }
  if (stream.capture) {
    stream.capture->invalidate("a wait for an event outside of the capture");
    throw Misuse{cudaErrorStreamCaptureIsolation,
                 "a wait of a captured stream for an event that was recorded outside of the capture"};
  }
  call.rt.order_with_default(stream);
  const std::array<Scheduler::WorkPtr, 2> both = {stream.tail, event.work};
  stream.tail = call.rt.scheduler.enqueue({.run = {}, .lane = stream.lane}, both);
}

/// What a stream that is destroyed has enqueued is done all the same, before what waits for its device, and before the
/// legacy stream if it is a blocking one.
void leave_work(Runtime& rt, Stream& stream) {
  Scheduler::WorkPtr& orphans = rt.orphans[stream.device];
  const std::array<Scheduler::WorkPtr, 2> both = {stream.tail, orphans};
  orphans = orphans ? rt.scheduler.enqueue({.run = {}, .lane = stream.lane}, both) : stream.tail;
  rt.default_streams.leave(stream, rt.scheduler);
}

}  // namespace

/// The function is called on a thread of the simulated GPU's; not if the device failed.
cudaError_t gradring::simulated_gpu::launch_host_function(const char* who, cudaStream_t handle, cudaHostFn_t function,
                                                          void* argument) {
  return call("cudaLaunchHostFunc", [&](Call& call) {
    Stream& stream = call.stream(handle);
    call.on(stream.device);
    call.rt.enqueue(stream, host_function_work(who, function, argument));
  });
}

StreamWork gradring::simulated_gpu::host_function_work(const char* who, cudaHostFn_t function, void* argument) {
  if (!function) throw Misuse{cudaErrorInvalidValue, "a null pointer as the function"};
  return {.run =
              [function, argument](CountedWork*) {
                const HostFunctionScope scope;
                function(argument);
                return 0.0;
              },
          .kind = CountedWork::Kind::host_function,
          .name = who,
          .on_host = true};
}

void gradring::simulated_gpu::note_use(const char* call, const void* data, std::size_t bytes, bool is_write) {
  if (bytes == 0) return;
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  GlobalMemory& memory = runtime().memory;
  if (!memory.find(address, bytes))
    throw IllegalAccess(joined(call, (is_write ? " writes " : " reads "), memory.describe(address, bytes)));
  memory.note_use(address, bytes, is_write, call);
  if (is_write) memory.mark_written(address, bytes);
}

extern "C" {

/// Priorities have no effect: CUDA promises none.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call("cudaStreamCreateWithPriority", [&](Call& call) {
    const Device& device = call.on_current();
    if (flags != cudaStreamNonBlocking && flags != cudaStreamDefault)
      throw Misuse{cudaErrorInvalidValue, joined("unknown flags ", flags)};
    *stream =
        call.rt.streams.add({.device = device.index(),
                             .lane = call.rt.scheduler.new_lanes(1),
                             .kind = flags == cudaStreamDefault ? Stream::Kind::blocking : Stream::Kind::non_blocking,
                             .priority = std::clamp(priority, kGreatestPriority, kLeastPriority)});
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, kLeastPriority);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange", [&](Call& call) {
    call.on_current();
    if (least) *least = kLeastPriority;
    if (greatest) *greatest = kGreatestPriority;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return call("cudaStreamGetPriority", [&](Call& call) { *priority = call.stream(handle).priority; });
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return call("cudaStreamGetFlags", [&](Call& call) {
    *flags = call.stream(handle).kind == Stream::Kind::non_blocking ? cudaStreamNonBlocking : cudaStreamDefault;
  });
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  return call("cudaStreamGetId", [&](Call& call) { *id = call.stream(handle).lane; });
}

/// Without the graph and its nodes, which exist once the capture has ended.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges,
                                     std::size_t* count) {
  if (graph || nodes || edges || count)
    return misused("cudaStreamGetCaptureInfo", {cudaErrorNotSupported, "the graph of a capture that has not ended"});
  if (id) {
    const cudaError_t known = call("cudaStreamGetCaptureInfo", [&](Call& call) { *id = call.stream(handle).lane; });
    if (known != cudaSuccess) return known;
  }
  return cudaStreamIsCapturing(handle, status);
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return call("cudaStreamGetDevice", [&](Call& call) { *device = call.stream(handle).device; });
}

/// Enqueued work is done all the same.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return call("cudaStreamDestroy", [&](Call& call) {
    if (DefaultStreams::is_default(handle) && !call.rt.options.is_strict)
      throw Misuse{cudaErrorInvalidResourceHandle, "a default stream, which cannot be destroyed"};
    Stream& stream = call.stream(handle);
    call.release(stream.device);
    if (stream.tail) leave_work(call.rt, stream);
    if (const std::shared_ptr<Capture> capture = stream.capture) {
      if (capture->is_origin(stream)) std::erase(call.rt.captures, capture);  // nothing can end it any more
      capture->leave(stream);
    }
    call.rt.streams.remove(handle);
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return call("cudaStreamQuery", [&](Call& call) {
    Stream& stream = call.stream(handle);
    call.on(stream.device);
    if (stream.capture)
      refuse_query(*stream.capture, cudaErrorStreamCaptureUnsupported, "a query of a stream that is captured");
    call.refuse_in_captures();
    order_legacy(call, stream);
    if (!query(call, stream.tail)) return cudaErrorNotReady;
    call.on(stream.device);  // the work may have failed meanwhile
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call("cudaStreamSynchronize", [&](Call& call) {
    Stream& stream = call.stream(handle);
    call.on(stream.device);
    if (stream.capture)
      refuse_query(*stream.capture, cudaErrorStreamCaptureUnsupported, "a wait for a stream that is captured");
    call.refuse_in_captures();
    order_legacy(call, stream);
    call.wait_for(stream.tail, stream.device);
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t event_handle, unsigned flags) {
  return call("cudaStreamWaitEvent", [&](Call& call) {
    Stream& stream = call.stream(stream_handle);
    const Event& event = call.rt.events.at(event_handle);
    call.on(stream.device);
    if (flags != cudaEventWaitDefault) throw Misuse{cudaErrorNotSupported, "flags, which are not simulated"};
    if (event.is_recorded) wait_for(call, stream, event);
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  return launch_host_function("cudaLaunchHostFunc", stream, function, argument);
}

/// The older way to the same: the status is that of the stream's work, which is right where the function is called.
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned) {
  struct Called {
    cudaStream_t stream;
    cudaStreamCallback_t callback;
    void* data;
  };
  const auto run = [](void* argument) {
    const std::unique_ptr<const Called> called(static_cast<const Called*>(argument));
    called->callback(called->stream, cudaSuccess, called->data);
  };
  auto called = std::make_unique<Called>(Called{stream, callback, data});
  const cudaError_t result = launch_host_function("cudaStreamAddCallback", stream, run, called.get());
  if (result == cudaSuccess) (void)called.release();
  return result;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags != cudaEventRecordDefault)
    return misused("cudaEventRecordWithFlags", {cudaErrorNotSupported, "an external event of a graph"});
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&](Call& call) {
    const Device& device = call.on_current();
    if ((flags & ~static_cast<unsigned>(cudaEventBlockingSync | cudaEventDisableTiming)) != 0)
      throw Misuse{cudaErrorNotSupported, joined("flags ", flags, ", which are not simulated")};
    *event = call.rt.events.add({.device = device.index(), .has_timing = (flags & cudaEventDisableTiming) == 0});
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return call("cudaEventDestroy", [&](Call& call) {
    call.release(call.rt.events.at(handle).device);
    call.rt.events.remove(handle);
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event_handle, cudaStream_t stream_handle) {
  return call("cudaEventRecord", [&](Call& call) {
    Event& event = call.rt.events.at(event_handle);
    Stream& stream = call.stream(stream_handle);
    call.on(stream.device);
    if (event.device != stream.device)
      throw Misuse{cudaErrorInvalidResourceHandle,
                   joined("an event of cuda:", event.device, " in a stream of cuda:", stream.device)};
    if (stream.capture) stream.capture->require_valid();
    call.rt.order_with_default(stream);
    event.is_recorded = true;
    event.work = stream.capture ? nullptr : stream.tail;
    event.capture = stream.capture;
    event.frontier = stream.frontier;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return call("cudaEventQuery", [&](Call& call) {
    const Event& event = call.rt.events.at(handle);
    call.on(event.device);
    if (event.capture)
      refuse_query(*event.capture, cudaErrorCapturedEvent, "a query of an event that was recorded in a capture");
    call.refuse_in_captures();
    if (!query(call, event.work)) return cudaErrorNotReady;
    call.on(event.device);
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return call("cudaEventSynchronize", [&](Call& call) {
    const Event& event = call.rt.events.at(handle);
    call.on(event.device);
    if (event.capture)
      refuse_query(*event.capture, cudaErrorCapturedEvent, "a wait for an event that was recorded in a capture");
    call.refuse_in_captures();
    call.wait_for(event.work, event.device);
  });
}

/// By the counted clock: see Device and Scheduler.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start_handle, cudaEvent_t stop_handle) {
  return call("cudaEventElapsedTime", [&](Call& call) {
    const Event& start = call.rt.events.at(start_handle);
    const Event& stop = call.rt.events.at(stop_handle);
    call.on(start.device);
    const auto require = [](bool condition, const char* what) {
      if (!condition) throw Misuse{cudaErrorInvalidResourceHandle, what};
    };
    require(start.device == stop.device, "events of two devices");
    require(start.has_timing && stop.has_timing, "an event without timing");
    require(start.is_recorded && stop.is_recorded, "an event that was never recorded");
    if (start.capture || stop.capture) throw Misuse{cudaErrorCapturedEvent, "an event that was recorded in a capture"};
    if (!query(call, start.work) || !query(call, stop.work)) return cudaErrorNotReady;
    const double seconds = call.rt.scheduler.end_seconds(stop.work) - call.rt.scheduler.end_seconds(start.work);
    constexpr double kMilliseconds = 1e3;
    *milliseconds = static_cast<float>(seconds * kMilliseconds);
    return cudaSuccess;
  });
}
}
