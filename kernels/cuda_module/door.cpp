// SPDX-License-Identifier: Apache-2.0
// Compiled into the CUDA module alone, where kernel_set is nvcc's copy.
#include "kernels/cuda_module/door.h"

extern "C" __attribute__((visibility("default"))) const gradring::kernels::KernelSet* gradring_cuda_kernels() {
  static const gradring::kernels::KernelSet set = gradring::kernels::kernel_set();
  return &set;
}
