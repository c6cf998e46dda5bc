// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace gradring::simulated_gpu {

/// What a launch executed, by instruction of the kernel (the index is that of ptx::Kernel::code). Classes, source
/// lines and sums are made from it.
struct Counters {
  struct Instruction {
    std::uint64_t executions = 0;     ///< by warps
    std::uint64_t lanes = 0;          ///< threads in these
    std::uint64_t requests = 0;       ///< of memory, by warps
    std::uint64_t bytes = 0;          ///< that threads asked for
    std::uint64_t sectors = 0;        ///< of 32 bytes, of global memory
    std::uint64_t least_sectors = 0;  ///< that the same bytes need at least
    std::uint64_t wavefronts = 0;     ///< of shared memory
    std::uint64_t least_wavefronts = 0;
  };
  std::uint64_t blocks = 0;
  std::uint64_t warps = 0;
  std::vector<Instruction> instructions;

  Counters& operator+=(const Counters& other);
};

}  // namespace gradring::simulated_gpu
