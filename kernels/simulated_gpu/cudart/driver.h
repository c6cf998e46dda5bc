// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

namespace gradring::simulated_gpu {

/// cuTensorMapEncodeTiled as it was in CUDA 12.0: the one function of the driver that cudaGetDriverEntryPointByVersion finds.
using EncodeTiled = PFN_cuTensorMapEncodeTiled_v12000;

}  // namespace gradring::simulated_gpu
