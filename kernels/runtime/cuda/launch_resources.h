// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/runtime/launch_report.h"

namespace gradring::kernels {

/// What nvcc gave a kernel, and how many warps of such a launch the current device's multiprocessors hold. `kernel` is
/// the address of a __global__ function of this module.
///
/// Errors    DeviceError if CUDA does not know it.
LaunchReport::Resources launch_resources(const void* kernel, std::size_t threads, std::size_t dynamic_shared_bytes);

}  // namespace gradring::kernels
