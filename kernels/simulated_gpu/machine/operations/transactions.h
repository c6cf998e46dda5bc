// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simulated_gpu/machine/counters.h"
#include "kernels/simulated_gpu/machine/lanes.h"
#include "kernels/simulated_gpu/machine/operations/span.h"

namespace gradring::simulated_gpu {

/// Adds a request of global memory: the sectors of 32 bytes that its lanes touch.
void count_sectors(Counters::Instruction& counters, Mask active, unsigned bytes, const Addresses& addresses,
                   const Span& span);

/// Adds a request of shared memory. It has 32 banks of 4 bytes: a wavefront serves one word of each. Accesses of 8
/// bytes are served by half warps, of 16 bytes by quarter warps.
///
/// Source    CUDA C++ Programming Guide, compute capability 5.x and later.
void count_wavefronts(Counters::Instruction& counters, Mask active, unsigned bytes, const Addresses& addresses,
                      const Span& span);

}  // namespace gradring::simulated_gpu
