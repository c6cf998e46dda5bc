// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/runtime/stream.h"

namespace gradring::tests {

/// Launches a kernel that does nothing, as nvcc compiles kernels/simt/simt.h, with `shared_bytes` of dynamic shared
/// memory.
void launch_nothing(kernels::Stream& stream, std::size_t shared_bytes);
/// The same with the grid that simt::grid_for gives for `elements`.
void launch_nothing_for(kernels::Stream& stream, std::size_t elements);
/// The address by which the runtime knows the kernel.
const void* nothing_kernel_address();

}  // namespace gradring::tests
