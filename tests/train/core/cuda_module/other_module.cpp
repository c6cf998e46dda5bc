// SPDX-License-Identifier: Apache-2.0
// A CUDA module of the next version, as it stays behind when only half of an installation is updated.
#include "train/core/cuda_module/cuda_module.h"

extern "C" const gradring::train::CudaModule* gradring_cuda_module() {
  static const gradring::train::CudaModule module = {.version = gradring::train::kCudaModuleVersion + 1};
  return &module;
}
