// SPDX-License-Identifier: Apache-2.0
// The file that the program opens as its CUDA module. The stand-in is in the program itself (module.cpp): the CPU's
// execution model is linked into programs only, never into a shared library.
#include "train/core/cuda_module/cuda_module.h"

extern "C" const gradring::train::CudaModule* gradring_stand_in_module();

extern "C" const gradring::train::CudaModule* gradring_cuda_module() { return gradring_stand_in_module(); }
