// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/support/fake_cudart/objects.h"

using namespace gradring::tests;

extern "C" {

/// The mode is taken to be thread-local.
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  const std::lock_guard lock(fake_cuda().mutex);
  FakeStream& stream = of(handle);
  open_context("cudaStreamBeginCapture", stream.device);
  if (stream.captured) return cudaErrorIllegalState;
  stream.captured = std::make_shared<FakeCapture>(
      FakeCapture{.origin = &stream, .thread = std::this_thread::get_id(), .streams = {&stream}});
  captures().push_back(stream.captured);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const std::lock_guard lock(fake_cuda().mutex);
  FakeStream& stream = of(handle);
  open_context("cudaStreamEndCapture", stream.device);
  *graph = nullptr;
  const std::shared_ptr<FakeCapture> capture = stream.captured;
  if (!capture) return cudaErrorIllegalState;
  if (capture->origin != &stream) return cudaErrorStreamCaptureUnmatched;
  if (capture->thread != std::this_thread::get_id()) return cudaErrorStreamCaptureWrongThread;
  capture->ended = true;
  std::erase(captures(), capture);
  for (FakeStream* joined : capture->streams) joined->captured = nullptr;
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (!capture->unjoined.empty()) return cudaErrorStreamCaptureUnjoined;
  return make(graph, FakeGraph{.device = stream.device, .work = capture->work});
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaGraphDestroy", of(graph).device);
  return destroy(graph);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaGraphInstantiate", of(graph).device);
  return make(executable, of(graph));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaGraphExecDestroy", of(executable).device);
  return destroy(executable);
}

/// The host enqueues the whole once.
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaGraphLaunch", of(executable).device);
  const Work& work = of(executable).work;
  fake_cuda().now += FakeCuda::kEnqueueSeconds;
  of(stream).free_at =
      std::max(of(stream).free_at, fake_cuda().now) + FakeCuda::kWorkSeconds * static_cast<double>(work.size());
  for (const auto& part : work) part();
  return cudaSuccess;
}
}
