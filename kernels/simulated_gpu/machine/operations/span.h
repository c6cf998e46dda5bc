// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/simulated_gpu/machine/lanes.h"
#include "kernels/simulated_gpu/machine/launch.h"

namespace gradring::simulated_gpu {

/// An address for each lane of a warp; those of lanes that do not take part are equal to another one's.
struct Addresses {
  alignas(64) std::uint64_t lane[kWarpSize];
};

/// What a warp's addresses have in common.
struct Span {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t bits = 0;       ///< those that are set in any of them
  bool is_consecutive = false;  ///< each lane accesses what follows the bytes of the one before
};

/// The lanes access `bytes` bytes each.
Span span_of(const Addresses& addresses, unsigned bytes);

/// Adds a request of global memory: the sectors of 32 bytes that its lanes touch.
void count_sectors(Counters::Instruction& counters, Mask active, unsigned bytes, const Addresses& addresses,
                   const Span& span);

/// Adds a request of shared memory. It has 32 banks of 4 bytes: a wavefront serves one word of each. Accesses of 8
/// bytes are served by half warps, of 16 bytes by quarter warps.
///
/// Source    CUDA C++ Programming Guide, compute capability 5.x and later.
void count_wavefronts(Counters::Instruction& counters, Mask active, unsigned bytes, const Addresses& addresses,
                      const Span& span);

/// Corrects what count_sectors and count_wavefronts added for a cp.async of 16 bytes to `to`. A quarter warp requests
/// as many sectors as it writes ones of 32 bytes of shared memory, and a run of vectors within two neighbouring lines
/// of 128 bytes takes one wavefront. `reading`: the lanes that read; `sectors`: those that were added for them.
///
/// Source    what Nsight Compute counts on an H200 (docs/counters.md); NVIDIA does not document it.
void correct_for_copy(Counters::Instruction& counters, Mask active, Mask reading, const Addresses& to,
                      std::uint64_t sectors);

/// span_of as compiled for a level of the instruction set (kernels/lib/level_copies.h).
using SpanOf = Span (*)(const Addresses& addresses, unsigned bytes);

}  // namespace gradring::simulated_gpu
