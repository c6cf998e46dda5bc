// SPDX-License-Identifier: Apache-2.0
// Copies and clearing. Without a stream: in the legacy default stream.
#include <cuda_runtime_api.h>

#include "kernels/simulated_gpu/cudart/copies.h"

using namespace gradring::simulated_gpu;

namespace {

cudaError_t copied(cudaStream_t stream, const CopySpec& spec) {
  return call(spec.name, [&](Call& call) { copy(call, stream, spec); });
}

cudaError_t cleared(cudaStream_t stream, const ClearSpec& spec) {
  return call(spec.name, [&](Call& call) { clear(call, stream, spec); });
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copied(stream, {.name = "cudaMemcpyAsync", .to = to, .from = from, .shape = {.bytes = bytes}, .kind = kind});
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return copied(nullptr,
                {.name = "cudaMemcpy", .to = to, .from = from, .shape = {.bytes = bytes}, .kind = kind, .waits = true});
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, cudaStream_t stream) {
  return copied(stream, {.name = "cudaMemcpyPeerAsync", .to = to, .from = from, .shape = {.bytes = bytes}});
}

cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return copied(nullptr, {.name = "cudaMemcpyPeer", .to = to, .from = from, .shape = {.bytes = bytes}, .waits = true});
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return copied(stream, {.name = "cudaMemcpy2DAsync",
                         .to = to,
                         .to_pitch = {.row = to_pitch},
                         .from = from,
                         .from_pitch = {.row = from_pitch},
                         .shape = {width, height},
                         .kind = kind});
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                         std::size_t height, cudaMemcpyKind kind) {
  return copied(nullptr, {.name = "cudaMemcpy2D",
                          .to = to,
                          .to_pitch = {.row = to_pitch},
                          .from = from,
                          .from_pitch = {.row = from_pitch},
                          .shape = {width, height},
                          .kind = kind,
                          .waits = true});
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  return call("cudaMemcpy3DAsync",
              [&](Call& call) { copy(call, stream, copy_spec("cudaMemcpy3DAsync", *parameters)); });
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters) {
  return call("cudaMemcpy3D", [&](Call& call) {
    CopySpec spec = copy_spec("cudaMemcpy3D", *parameters);
    spec.waits = true;
    copy(call, nullptr, spec);
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return cleared(
      stream, {.name = "cudaMemsetAsync", .to = to, .shape = {.bytes = bytes}, .value = static_cast<unsigned>(value)});
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return cleared(nullptr, {.name = "cudaMemset",
                           .to = to,
                           .shape = {.bytes = bytes},
                           .value = static_cast<unsigned>(value),
                           .waits = true});
}

cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                              cudaStream_t stream) {
  return cleared(stream, {.name = "cudaMemset2DAsync",
                          .to = to,
                          .pitch = {.row = pitch},
                          .shape = {width, height},
                          .value = static_cast<unsigned>(value)});
}

cudaError_t cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  return cleared(nullptr, {.name = "cudaMemset2D",
                           .to = to,
                           .pitch = {.row = pitch},
                           .shape = {width, height},
                           .value = static_cast<unsigned>(value),
                           .waits = true});
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
  return cleared(stream, {.name = "cudaMemset3DAsync",
                          .to = to.ptr,
                          .pitch = {to.pitch, to.pitch * to.ysize},
                          .shape = {extent.width, extent.height, extent.depth},
                          .value = static_cast<unsigned>(value)});
}

cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return cleared(nullptr, {.name = "cudaMemset3D",
                           .to = to.ptr,
                           .pitch = {to.pitch, to.pitch * to.ysize},
                           .shape = {extent.width, extent.height, extent.depth},
                           .value = static_cast<unsigned>(value),
                           .waits = true});
}
}
