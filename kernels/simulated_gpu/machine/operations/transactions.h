// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simulated_gpu/machine/counters.h"
#include "kernels/simulated_gpu/machine/lanes.h"
#include "kernels/simulated_gpu/machine/operations/access.h"

namespace gradring::simulated_gpu {

/// Whether lane i accesses what follows lane i - 1's bytes.
bool are_consecutive(const Addresses& addresses, unsigned bytes);

/// Adds a request of global memory: the sectors of 32 bytes that its lanes touch, of [first, first + extent).
void count_sectors(Counters::Instruction& counters, Mask active, unsigned bytes, const Addresses& addresses,
                   std::uint64_t first, std::size_t extent, bool is_consecutive);

/// Adds a request of shared memory. It has 32 banks of 4 bytes: a wavefront serves one word of each. Accesses of 8
/// bytes are served by half warps, of 16 bytes by quarter warps.
///
/// Source    CUDA C++ Programming Guide, compute capability 5.x and later.
void count_wavefronts(Counters::Instruction& counters, Mask active, unsigned bytes, const Addresses& addresses,
                      bool is_consecutive);

}  // namespace gradring::simulated_gpu
