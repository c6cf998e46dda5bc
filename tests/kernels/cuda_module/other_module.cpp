// SPDX-License-Identifier: Apache-2.0
// A CUDA module of the next version, as it stays behind when only half of an installation is renewed.
#include "kernels/cuda_module/door.h"

extern "C" const gradring::kernels::CudaModuleDoor* gradring_cuda_door() {
  static const gradring::kernels::CudaModuleDoor door = {.version = gradring::kernels::kCudaModuleVersion + 1};
  return &door;
}
