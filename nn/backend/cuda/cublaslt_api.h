// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>

#include <source_location>
#include <string_view>

namespace gradring::nn {

/// The functions of cuBLASLt that we call, looked up when a backend is made; as CudnnApi.
struct CublasLtApi {
  decltype(&::cublasLtGetVersion) get_version = nullptr;
  decltype(&::cublasLtGetStatusString) get_status_string = nullptr;
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtDestroy) destroy = nullptr;
  decltype(&::cublasLtMatmulDescCreate) matmul_create = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) matmul_destroy = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) matmul_set = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) get_heuristic = nullptr;
  decltype(&::cublasLtMatmul) matmul = nullptr;

  /// Errors    DeviceError if libcublasLt of this build's major version is not there, or lacks one of these.
  static CublasLtApi load();
};

/// Throws unless `status` is success. `call` is the name of the function that returned it.
///
/// Errors    DeviceError: the call, cuBLAS's name for the error, and the caller's place.
void cublas_check(const CublasLtApi& api, cublasStatus_t status, std::string_view call,
                  std::source_location where = std::source_location::current());

}  // namespace gradring::nn
