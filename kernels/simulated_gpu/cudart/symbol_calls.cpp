// SPDX-License-Identifier: Apache-2.0
// Variables of modules: their addresses, and copies to and from them.
#include <cuda_runtime_api.h>

#include <string>

#include "kernels/simulated_gpu/cudart/kernel_table.h"
#include "kernels/simulated_gpu/cudart/runtime.h"

using namespace gradring::simulated_gpu;

namespace {

struct Symbol {
  std::string name;
  char* address = nullptr;
  std::size_t bytes = 0;
};

/// On the current device.
Symbol symbol_at(Call& call, const void* host) {
  const Device& device = call.on_current();
  const LoadedVariable found = kernel_table().load_variable(host, device.card().compute_capability());
  return {.name = std::string(found.module.variables()[found.index].name),
          .address = reinterpret_cast<char*>(call.rt.variables(found.module, device.index())[found.index]),
          .bytes = found.bytes};
}

/// Gives the address of a part of a variable, which a copy then uses.
cudaError_t find_part(const char* name, const void* host, std::size_t bytes, std::size_t offset, void** part) {
  return call(name, [&](Call& call) {
    const Symbol symbol = symbol_at(call, host);
    if (offset > symbol.bytes || bytes > symbol.bytes - offset)
      throw Misuse{cudaErrorInvalidValue,
                   joined(bytes, " bytes, from ", offset, " bytes into ", symbol.name, " of ", symbol.bytes, " bytes")};
    *part = symbol.address + offset;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return call("cudaGetSymbolAddress", [&](Call& call) { *address = symbol_at(call, symbol).address; });
}

cudaError_t cudaGetSymbolSize(std::size_t* bytes, const void* symbol) {
  return call("cudaGetSymbolSize", [&](Call& call) { *bytes = symbol_at(call, symbol).bytes; });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                               cudaMemcpyKind kind) {
  void* to = nullptr;
  const cudaError_t found = find_part("cudaMemcpyToSymbol", symbol, bytes, offset, &to);
  return found == cudaSuccess ? cudaMemcpy(to, from, bytes, kind) : found;
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                 cudaMemcpyKind kind) {
  void* from = nullptr;
  const cudaError_t found = find_part("cudaMemcpyFromSymbol", symbol, bytes, offset, &from);
  return found == cudaSuccess ? cudaMemcpy(to, from, bytes, kind) : found;
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  void* to = nullptr;
  const cudaError_t found = find_part("cudaMemcpyToSymbolAsync", symbol, bytes, offset, &to);
  return found == cudaSuccess ? cudaMemcpyAsync(to, from, bytes, kind, stream) : found;
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  void* from = nullptr;
  const cudaError_t found = find_part("cudaMemcpyFromSymbolAsync", symbol, bytes, offset, &from);
  return found == cudaSuccess ? cudaMemcpyAsync(to, from, bytes, kind, stream) : found;
}
}
