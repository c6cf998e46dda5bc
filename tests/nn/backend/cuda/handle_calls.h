// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/backend/cuda/cudnn_api.h"

namespace gradring::tests {

/// Replaces the functions that need a GPU for cuDNN's handle: there is one handle, which nothing looks into.
inline void fake_handle(nn::CudnnApi& api) {
  api.create = [](cudnnHandle_t* handle) {
    static int anything = 0;
    *handle = reinterpret_cast<cudnnHandle_t>(&anything);
    return CUDNN_STATUS_SUCCESS;
  };
  api.destroy = [](cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; };
  api.set_stream = [](cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; };
}

}  // namespace gradring::tests
