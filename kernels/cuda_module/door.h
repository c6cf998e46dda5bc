// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/kernel_set.h"

namespace gradring::kernels {

/// The one function that the CUDA module shows to the outside, and its name.
using CudaModuleDoor = const KernelSet* (*)();
inline constexpr const char* kCudaModuleDoor = "gradring_cuda_kernels";

}  // namespace gradring::kernels
