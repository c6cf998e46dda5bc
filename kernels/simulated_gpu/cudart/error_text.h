// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/simulated_gpu/ptx/error.h"

namespace gradring::simulated_gpu {

/// "cudaErrorInvalidValue"
const char* error_name(cudaError_t error);
/// "invalid argument"
const char* error_text(cudaError_t error);

/// A call that broke a rule of CUDA: thrown within a call, which reports it and returns `error`.
struct Misuse {
  cudaError_t error = cudaErrorUnknown;
  std::string text;
};

/// What a call returns without a rule being broken: not ready, out of memory, a device that failed before.
struct Refusal {
  cudaError_t error = cudaErrorUnknown;
};

}  // namespace gradring::simulated_gpu
