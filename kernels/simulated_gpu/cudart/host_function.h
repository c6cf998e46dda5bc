// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace gradring::simulated_gpu {

// For simulations of libraries that enqueue work of their own (comm/transports/nccl/simulated), which is done by
// functions of the host. Names are those of the library's functions; they stay.

/// cudaLaunchHostFunc, by or for `who`.
cudaError_t launch_host_function(const char* who, cudaStream_t stream, cudaHostFn_t function, void* argument);

/// `call`, for which such a function is running, uses this memory. What it wrote, kernels may read.
///
/// Errors    throws a Fault, with which the device fails if the function passes it on: bytes that are not within one
///           block, a race.
void note_use(const char* call, const void* data, std::size_t bytes, bool is_write);

}  // namespace gradring::simulated_gpu
