// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/support/fake_cudart/objects.h"

using namespace gradring::tests;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaStreamBeginCapture", of(stream).device);
  of(stream).captured = std::make_shared<Work>();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(fake_cuda().mutex);
  open_context("cudaStreamEndCapture", of(stream).device);
  const auto captured = std::exchange(of(stream).captured, nullptr);
  if (!captured) return cudaErrorIllegalState;
  return make(graph, FakeGraph{.device = of(stream).device, .work = *captured});
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
