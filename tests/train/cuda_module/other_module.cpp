// SPDX-License-Identifier: Apache-2.0
// A CUDA module of the next version, as it stays behind when only half of an installation is renewed.
#include "train/cuda_module/door.h"

extern "C" const gradring::train::CudaModuleDoor* gradring_cuda_door() {
  static const gradring::train::CudaModuleDoor door = {.version = gradring::train::kCudaModuleVersion + 1};
  return &door;
}
