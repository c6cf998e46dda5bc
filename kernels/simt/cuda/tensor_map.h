// SPDX-License-Identifier: Apache-2.0
// What kernels/lib/bulk_tensor.h asks of the driver. The program is not linked to the driver, which a machine without a
// GPU lacks: the runtime knows it.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <string>

#include "kernels/base/error.h"
#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/simt/engine/tensor_layout.h"

namespace gradring::simt {
inline namespace on_cuda {

using TensorMap = CUtensorMap;

/// A function of the driver, as it was in CUDA 12.0.
///
/// Errors    DeviceError if the driver is older.
inline void* driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  kernels::cuda_check(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found),
                      "cudaGetDriverEntryPointByVersion");
#else
  kernels::cuda_check(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found), "cudaGetDriverEntryPoint");
#endif
  if (found != cudaDriverEntryPointSuccess)
    throw DeviceError("the NVIDIA driver has no " + std::string(name) + ": install a newer driver");
  return function;
}

/// Errors    DeviceError if the driver refuses: kTensorAlignment is not kept, or an extent is not what it can be.
inline TensorMap make_tensor_map(const TensorBox& box) {
  static const auto encode =
      reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(driver_function("cuTensorMapEncodeTiled"));
  const std::array<cuuint64_t, 2> extents = {static_cast<cuuint64_t>(box.columns), static_cast<cuuint64_t>(box.rows)};
  const std::array<cuuint64_t, 1> row_bytes = {static_cast<cuuint64_t>(box.columns) * 2};
  const std::array<cuuint32_t, 2> box_extents = {cuuint32_t{TensorBox::kBoxColumns},
                                                 static_cast<cuuint32_t>(box.box_rows)};
  constexpr std::array<cuuint32_t, 2> kEveryElement = {1, 1};
  // The driver wants a context, and a thread has none before it uses a device: cudaSetDevice makes it current.
  int device = 0;
  kernels::cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  kernels::cuda_check(cudaSetDevice(device), "cudaSetDevice");
  TensorMap map{};
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, const_cast<void*>(box.data), extents.data(), row_bytes.data(),
             box_extents.data(), kEveryElement.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw DeviceError("cuTensorMapEncodeTiled failed for a matrix of " + std::to_string(box.rows) + " x " +
                      std::to_string(box.columns) + " (error " + std::to_string(static_cast<int>(result)) +
                      "): report it with the shapes of the product");
  return map;
}

}  // namespace on_cuda
}  // namespace gradring::simt
