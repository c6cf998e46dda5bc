// SPDX-License-Identifier: Apache-2.0
// What nvcc --default-stream per-thread calls in place of the functions that take a stream: a null stream is that of
// the thread. _ptds: functions without a stream; _ptsz: with one.
#include <cuda_runtime_api.h>

#include "kernels/simulated_gpu/cudart/copies.h"

using namespace gradring::simulated_gpu;

namespace {

cudaStream_t of_thread(cudaStream_t stream) { return stream == nullptr ? cudaStreamPerThread : stream; }

/// A copy that was enqueued in the thread's stream with this result, and its end.
cudaError_t waited(cudaError_t enqueued) {
  return enqueued == cudaSuccess ? cudaStreamSynchronize(cudaStreamPerThread) : enqueued;
}

}  // namespace

extern "C" {

cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t);

cudaError_t cudaMemcpy_ptds(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return call("cudaMemcpy", [&](Call& call) {
    copy(call, cudaStreamPerThread,
         {.name = "cudaMemcpy", .to = to, .from = from, .shape = {.bytes = bytes}, .kind = kind, .waits = true});
  });
}
cudaError_t cudaMemset_ptds(void* to, int value, std::size_t bytes) {
  return call("cudaMemset", [&](Call& call) {
    clear(call, cudaStreamPerThread,
          {.name = "cudaMemset",
           .to = to,
           .shape = {.bytes = bytes},
           .value = static_cast<unsigned>(value),
           .waits = true});
  });
}
cudaError_t cudaMemcpy2D_ptds(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  return call("cudaMemcpy2D", [&](Call& call) {
    copy(call, cudaStreamPerThread,
         {.name = "cudaMemcpy2D",
          .to = to,
          .to_pitch = {.row = to_pitch},
          .from = from,
          .from_pitch = {.row = from_pitch},
          .shape = {width, height},
          .kind = kind,
          .waits = true});
  });
}
cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                    cudaMemcpyKind kind) {
  return waited(cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, cudaStreamPerThread));
}
cudaError_t cudaMemcpyFromSymbol_ptds(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                      cudaMemcpyKind kind) {
  return waited(cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, cudaStreamPerThread));
}

cudaError_t cudaMemcpyAsync_ptsz(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, kind, of_thread(stream));
}
cudaError_t cudaMemcpy2DAsync_ptsz(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                   std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, of_thread(stream));
}
cudaError_t cudaMemsetAsync_ptsz(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return cudaMemsetAsync(to, value, bytes, of_thread(stream));
}
cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                         cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, of_thread(stream));
}
cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                           cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, of_thread(stream));
}
cudaError_t cudaMallocAsync_ptsz(void** data, std::size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(data, bytes, of_thread(stream));
}
cudaError_t cudaMallocFromPoolAsync_ptsz(void** data, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return cudaMallocFromPoolAsync(data, bytes, pool, of_thread(stream));
}
cudaError_t cudaFreeAsync_ptsz(void* data, cudaStream_t stream) { return cudaFreeAsync(data, of_thread(stream)); }
cudaError_t cudaMemPrefetchAsync_ptsz(const void* data, std::size_t bytes, cudaMemLocation location, unsigned flags,
                                      cudaStream_t stream) {
  return cudaMemPrefetchAsync(data, bytes, location, flags, of_thread(stream));
}

cudaError_t cudaLaunchKernel_ptsz(const void* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                                  cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, of_thread(stream));
}
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared_bytes, cudaStream_t stream) {
  return __cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, of_thread(stream));
}
cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                             std::size_t shared_bytes, cudaStream_t stream) {
  return cudaLaunchCooperativeKernel(kernel, grid, block, arguments, shared_bytes, of_thread(stream));
}
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* kernel, void** arguments) {
  cudaLaunchConfig_t own = *config;
  own.stream = of_thread(own.stream);
  return cudaLaunchKernelExC(&own, kernel, arguments);
}
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t graph, cudaStream_t stream) {
  return cudaGraphLaunch(graph, of_thread(stream));
}
cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  return cudaLaunchHostFunc(of_thread(stream), function, argument);
}
cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags) {
  return cudaStreamAddCallback(of_thread(stream), callback, data, flags);
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) { return cudaStreamSynchronize(of_thread(stream)); }
cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) { return cudaStreamQuery(of_thread(stream)); }
cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return cudaStreamWaitEvent(of_thread(stream), event, flags);
}
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return cudaStreamBeginCapture(of_thread(stream), mode);
}
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t* graph) {
  return cudaStreamEndCapture(of_thread(stream), graph);
}
cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamIsCapturing(of_thread(stream), status);
}
cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned* flags) {
  return cudaStreamGetFlags(of_thread(stream), flags);
}
cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int* priority) {
  return cudaStreamGetPriority(of_thread(stream), priority);
}
cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int* device) {
  return cudaStreamGetDevice(of_thread(stream), device);
}
cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecord(event, of_thread(stream));
}
cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return cudaEventRecordWithFlags(event, of_thread(stream), flags);
}
}
