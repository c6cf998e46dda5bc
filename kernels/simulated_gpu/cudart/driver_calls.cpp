// SPDX-License-Identifier: Apache-2.0
// Functions of the driver, which a program gets from the runtime.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string>
#include <string_view>

#include "kernels/simulated_gpu/cudart/runtime.h"
#include "kernels/simulated_gpu/units/tensor_map.h"

using namespace gradring::simulated_gpu;

namespace {

CUresult reported(CUresult result, const std::string& why) {
  runtime().faults.add(FindingKind::misuse, joined("cuTensorMapEncodeTiled: ", why, " (error ", result, ")"));
  return result;
}

CUresult CUDAAPI encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                              const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                              const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                              CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                              CUtensorMapFloatOOBfill fill) {
  if (!this_thread().has_context)
    return reported(CUDA_ERROR_INVALID_CONTEXT, "this thread has no context: call cudaSetDevice first");
  if (runtime().device(this_thread().device).card().major < 9)
    return reported(CUDA_ERROR_NOT_SUPPORTED, "devices below compute capability 9.0 have no tensor maps");
  const TensorMapResult result = encode_tensor_map({.tensor_map = map,
                                                    .data_type = type,
                                                    .rank = rank,
                                                    .address = reinterpret_cast<std::uint64_t>(address),
                                                    .sizes = reinterpret_cast<const std::uint64_t*>(sizes),
                                                    .strides_bytes = reinterpret_cast<const std::uint64_t*>(strides),
                                                    .box = box,
                                                    .element_strides = element_strides,
                                                    .interleave = interleave,
                                                    .swizzle = swizzle,
                                                    .promotion = promotion,
                                                    .fill = fill});
  const auto code = static_cast<CUresult>(result.code);
  if (code != CUDA_SUCCESS) runtime().faults.add(FindingKind::misuse, result.reason);
  return code;
}

/// What this library exports by a name of the driver, in its newest form; null without it.
void* exported(const std::string& name) {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<void*>(&exported), &own) == 0) return nullptr;
  void* const library = ::dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  for (const char* const suffix : {"_v4", "_v3", "_v2", ""})
    if (void* const found = ::dlsym(library, (name + suffix).c_str())) return found;
  return nullptr;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, flags, result);
}
cudaError_t cudaGetDriverEntryPoint_ptsz(const char* name, void** function, unsigned long long flags,
                                         cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, flags, result);
}
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* name, void** function, unsigned version,
                                                  unsigned long long flags, cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(name, function, version, flags, result);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return call("cudaGetDriverEntryPointByVersion", [&](Call&) {
    constexpr unsigned kFirstVersion = 12000;  // with tensor maps
    if (version > CUDART_VERSION)
      throw Misuse{cudaErrorInvalidValue, joined("version ", version, ", but the driver has ", CUDART_VERSION)};
    const bool is_known = std::string_view(name) == "cuTensorMapEncodeTiled";
    const bool is_there = is_known && version >= kFirstVersion;
    constexpr PFN_cuTensorMapEncodeTiled_v12000 kEncode = &encode_tiled;  // as it was in CUDA 12.0
    *function = is_there ? reinterpret_cast<void*>(kEncode) : is_known ? nullptr : exported(name);
    if (result)
      *result = *function  ? cudaDriverEntryPointSuccess
                : is_known ? cudaDriverEntryPointVersionNotSufficent
                           : cudaDriverEntryPointSymbolNotFound;
  });
}
}
