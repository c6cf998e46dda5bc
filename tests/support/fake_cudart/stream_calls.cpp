// SPDX-License-Identifier: Apache-2.0
// Streams, events, and what is enqueued on them.
#include <algorithm>
#include <cstring>

#include "tests/support/fake_cudart/objects.h"

using namespace gradring::tests;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaStreamCreateWithFlags");
  return make(stream, FakeStream{.device = current_device()});
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaStreamDestroy", of(stream).device);
  if (FakeCapture* capture = of(stream).captured.get()) {
    capture->streams.erase(&of(stream));
    capture->unjoined.erase(&of(stream));
  }
  return destroy(stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaStreamQuery", of(stream).device);
  if (FakeCapture* capture = of(stream).captured.get()) {
    capture->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  if (breaks_capture()) return cudaErrorStreamCaptureUnsupported;
  if (fake_cuda().hangs) return cudaErrorNotReady;
  fake_cuda().now = std::max(fake_cuda().now, of(stream).free_at);
  return cudaSuccess;
}

/// Asks the driver, and one older than CUDA 12.8 cannot answer.
cudaError_t cudaStreamGetDevice(cudaStream_t, int*) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaStreamGetDevice");
  return cudaErrorCallRequiresNewerDriver;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaStreamIsCapturing", of(stream).device);
  const FakeCapture* capture = of(stream).captured.get();
  *status = !capture           ? cudaStreamCaptureStatusNone
            : capture->invalid ? cudaStreamCaptureStatusInvalidated
                               : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

/// A stream joins the capture of the event that it waits for. No dependency may cross the boundary of a capture.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t event_handle, unsigned) {
  const std::lock_guard lock(fake_cuda().mutex);
  FakeStream& stream = of(stream_handle);
  FakeEvent& event = of(event_handle);
  open_context("cudaStreamWaitEvent", stream.device);
  if (!event.recorded) return cudaSuccess;
  if (FakeCapture* capture = event.captured.get()) {
    if (capture->ended) return cudaErrorInvalidValue;
    if (stream.captured && stream.captured != event.captured) return cudaErrorStreamCaptureMerge;
    stream.captured = event.captured;
    capture->streams.insert(&stream);
    capture->unjoined.erase(event.stream);
    if (&stream != capture->origin) capture->unjoined.insert(&stream);
    return cudaSuccess;
  }
  if (stream.captured) {
    stream.captured->invalid = true;
    return cudaErrorStreamCaptureIsolation;
  }
  stream.free_at = std::max(stream.free_at, event.at);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  {
    const std::lock_guard lock(fake_cuda().mutex);
    open_context("cudaLaunchHostFunc", of(stream).device);
    if (fake_cuda().hangs) return cudaSuccess;
  }
  function(argument);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaMemcpyAsync", of(stream).device);
  return enqueue(of(stream), [to, from, bytes] { std::memmove(to, from, bytes); });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaMemsetAsync", of(stream).device);
  return enqueue(of(stream), [to, value, bytes] { std::memset(to, value, bytes); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaEventCreate");
  return make(event, FakeEvent{.device = current_device()});
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaEventDestroy", of(event).device);
  return destroy(event);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaEventRecord", of(stream).device);
  if (of(event).device != of(stream).device) return cudaErrorInvalidResourceHandle;
  of(event).recorded = true;
  of(event).captured = of(stream).captured;
  of(event).stream = &of(stream);
  if (of(stream).captured) return cudaSuccess;
  fake_cuda().now += FakeCuda::kEnqueueSeconds;
  of(event).at = of(stream).free_at = std::max(of(stream).free_at, fake_cuda().now);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaEventQuery", of(event).device);
  if (of(event).captured) return cudaErrorCapturedEvent;
  if (breaks_capture()) return cudaErrorStreamCaptureUnsupported;
  return fake_cuda().hangs ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaEventElapsedTime", of(start).device);
  *milliseconds = static_cast<float>((of(stop).at - of(start).at) * 1e3);
  return cudaSuccess;
}
}
