// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/simulated_gpu/ptx/module.h"

namespace gradring::simulated_gpu {

/// Threads of a block of this kernel at most.
unsigned most_threads(const ptx::Kernel& kernel);

/// Dynamic shared memory that blocks may have without asking for more.
std::size_t allowed_without_asking(const ptx::Kernel& kernel);

/// What CUDA checks of a launch when it is enqueued. `allowed_shared`: dynamic shared memory of a block at most.
///
/// Errors    Misuse: cudaErrorInvalidConfiguration for extents, cudaErrorInvalidValue for the rest.
void check_launch(const cudaLaunchConfig_t& config, const ptx::Kernel& kernel, std::size_t allowed_shared);

}  // namespace gradring::simulated_gpu
