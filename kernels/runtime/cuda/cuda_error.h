// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <source_location>
#include <string_view>

namespace gradring::kernels {

/// Throws unless `result` is cudaSuccess. `call` is the name of the function that returned it, as in NVIDIA's reference.
/// The runtime's own note of the error is cleared, so that a later, innocent call does not report it again.
///
/// Errors    DeviceError: the call, CUDA's name and text of the error, and the caller's place. Work runs after the call
///           that enqueued it; so an error that a kernel made may be reported by a later call of another kind.
/// Example   cuda_check(cudaEventRecord(event, stream), "cudaEventRecord");
void cuda_check(cudaError_t result, std::string_view call,
                std::source_location where = std::source_location::current());

/// Makes device `index` the one that this thread's calls are for, and leaves it so: every call of ours that depends on
/// it says so first. To put the old one back would open a context on device 0, hundreds of megabytes, from every thread
/// that works on another.
///
/// Errors    as cuda_check.
void make_current(int index, std::source_location where = std::source_location::current());

}  // namespace gradring::kernels
