// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cublaslt_api.h"

#include <string>

#include "kernels/runtime/error.h"
#include "kernels/runtime/shared_library.h"

namespace gradring::nn {

CublasLtApi CublasLtApi::load() {
  const SharedLibrary library("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR), nvidia_library_folders());
  CublasLtApi api;
  library.find("cublasLtGetVersion", api.get_version);
  library.find("cublasLtGetStatusString", api.get_status_string);
  library.find("cublasLtCreate", api.create);
  library.find("cublasLtDestroy", api.destroy);
  library.find("cublasLtMatmulDescCreate", api.matmul_create);
  library.find("cublasLtMatmulDescDestroy", api.matmul_destroy);
  library.find("cublasLtMatmulDescSetAttribute", api.matmul_set);
  library.find("cublasLtMatrixLayoutCreate", api.layout_create);
  library.find("cublasLtMatrixLayoutDestroy", api.layout_destroy);
  library.find("cublasLtMatmulPreferenceCreate", api.preference_create);
  library.find("cublasLtMatmulPreferenceDestroy", api.preference_destroy);
  library.find("cublasLtMatmulPreferenceSetAttribute", api.preference_set);
  library.find("cublasLtMatmulAlgoGetHeuristic", api.get_heuristic);
  library.find("cublasLtMatmul", api.matmul);
  return api;
}

void cublas_check(const CublasLtApi& api, cublasStatus_t status, std::string_view call, std::source_location where) {
  check<DeviceError>(status == CUBLAS_STATUS_SUCCESS, std::string(call) + " failed: " + api.get_status_string(status),
                     where);
}

}  // namespace gradring::nn
