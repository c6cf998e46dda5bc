// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/graph.h"

#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels {
namespace {

struct DestroyDefinition {
  void operator()(cudaGraph_t graph) const noexcept { (void)cudaGraphDestroy(graph); }
};
using Definition = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyDefinition>;

/// Ends the capture; what it held is dropped if `enqueue_work` threw.
Definition end_capture(cudaStream_t stream, cudaError_t& result) {
  cudaGraph_t graph = nullptr;
  result = cudaStreamEndCapture(stream, &graph);
  return Definition(graph);
}

Definition capture_definition(cudaStream_t stream, const std::function<void()>& enqueue_work) {
  // Thread-local: the strict modes let a capture fail when a watchdog in another thread asks for an event.
  cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  cudaError_t result = cudaSuccess;
  try {
    enqueue_work();
  } catch (...) {
    end_capture(stream, result);
    (void)cudaGetLastError();
    throw;
  }
  Definition definition = end_capture(stream, result);
  cuda_check(result, "cudaStreamEndCapture");
  return definition;
}

}  // namespace

void Graph::Destroy::operator()(cudaGraphExec_t executable) const noexcept { (void)cudaGraphExecDestroy(executable); }

Graph Graph::capture(CudaStream& stream, const std::function<void()>& enqueue_work) {
  make_current(stream.device_index());
  const Definition definition = capture_definition(static_cast<cudaStream_t>(stream.native_handle()), enqueue_work);
  cudaGraphExec_t executable = nullptr;
  cuda_check(cudaGraphInstantiate(&executable, definition.get(), 0), "cudaGraphInstantiate");
  Graph graph;
  graph.device_index_ = stream.device_index();
  graph.executable_.reset(executable);
  return graph;
}

void Graph::enqueue(Stream& stream) {
  check(executable_ != nullptr, "an empty graph cannot be enqueued: capture something first");
  make_current(device_index_);
  cuda_check(cudaGraphLaunch(executable_.get(), static_cast<cudaStream_t>(stream.native_handle())), "cudaGraphLaunch");
}

}  // namespace gradring::kernels
