// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simulated_gpu/memory/global_memory.h"

namespace gradring::tests {

/// The heap of this program, as memory that simulated GPUs may use: every block that `new` gave is known with its exact
/// size, so that a kernel's step past the end of an array is a fault. The stack of the thread that called this first is
/// one block.
///
/// Tests of kernels work on arrays of the host, as on a CPU; so they need no copies to a device.
simulated_gpu::PageableMemory& host_heap();

/// Blocks that are freed from now on are removed from `memory`, in which the heap is used.
void tell_when_freed(simulated_gpu::GlobalMemory& memory);

}  // namespace gradring::tests
