// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace gradring::simulated_gpu {

/// cudaLaunchHostFunc, by or for `who`: the name of the call, or of the library's function that the work
/// stands for. It stays.
cudaError_t launch_host_function(const char* who, cudaStream_t stream, cudaHostFn_t function, void* argument);

}  // namespace gradring::simulated_gpu
