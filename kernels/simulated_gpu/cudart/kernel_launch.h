// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/simulated_gpu/counters/occupancy.h"
#include "kernels/simulated_gpu/cudart/kernel_table.h"
#include "kernels/simulated_gpu/cudart/runtime.h"

namespace gradring::simulated_gpu {

/// The kernel that a program names by `kernel`, for the device.
///
/// Errors    as KernelTable::load
const LoadedKernel& loaded(const void* kernel, const Device& device);

/// Threads of a block of this kernel at most.
unsigned most_threads(const ptx::Kernel& kernel);
/// Dynamic shared memory that a block may have: without asking for more, or what a program asked for.
std::size_t allowed_shared(const Runtime& rt, const void* kernel, const LoadedKernel& code, int device);
/// Of a thread; 0: not known.
int registers_of(const LoadedKernel& code);
/// How many such blocks a multiprocessor holds.
Occupancy occupancy_of(const Device& device, const LoadedKernel& code, unsigned threads, std::size_t dynamic_shared);

/// The work of a launch. The arguments are copied.
///
/// Errors    Misuse: cudaErrorInvalidConfiguration for extents, cudaErrorInvalidValue for other limits,
///           cudaErrorNotSupported for what is not simulated.
StreamWork launch_work(Runtime& rt, const Device& device, const cudaLaunchConfig_t& config, const void* kernel,
                       void** arguments);

}  // namespace gradring::simulated_gpu
