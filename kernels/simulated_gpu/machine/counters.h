// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/simulated_gpu/memory/touched_sectors.h"

namespace gradring::simulated_gpu {

/// What a launch executed, by instruction of the kernel (the index is that of ptx::Kernel::code). Classes, source
/// lines and sums are made from it.
struct Counters {
  struct Instruction {
    std::uint64_t executions = 0;     ///< by warps
    std::uint64_t lanes = 0;          ///< threads in these
    std::uint64_t requests = 0;       ///< of global memory, by warps; none of a tensor copy
    std::uint64_t bytes = 0;          ///< of global memory, that threads and tensor copies asked for
    std::uint64_t sectors = 0;        ///< of 32 bytes, in these requests
    std::uint64_t least_sectors = 0;  ///< that the same bytes need at least
    std::uint64_t shared_requests = 0;
    std::uint64_t wavefronts = 0;  ///< of shared memory
    std::uint64_t least_wavefronts = 0;
  };
  std::uint64_t blocks = 0;
  std::uint64_t warps = 0;
  std::vector<Instruction> instructions;

  // Only with ExecutionOptions::counted_multiprocessors:
  /// Executions by multiprocessor and instruction, with the blocks shared out in turns.
  std::vector<std::vector<std::uint64_t>> by_multiprocessor;
  TouchedSectors read, written;  ///< of global memory

  Counters& operator+=(const Counters& other);
};

}  // namespace gradring::simulated_gpu
